// Everything a page is made of, under one name.

export * from "./api.js";
export * from "./dom.js";
export * from "./format.js";
export * from "./live.js";
export * from "./watch.js";
export * from "./parts/chart.js";
export * from "./parts/feed.js";
export * from "./parts/names.js";
export * from "./parts/table.js";
export * from "./parts/time.js";
export * from "./parts/track.js";
