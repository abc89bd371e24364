//! Exact quantiles: every value is kept and sorted, nothing is put into buckets.

/// Values in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sorted(Vec<f64>);

impl Sorted {
    pub(crate) fn new(mut values: Vec<f64>) -> Sorted {
        values.sort_by(f64::total_cmp);
        Sorted(values)
    }

    /// The smallest value that at least the share `q` of all values does not exceed (nearest rank); NaN when there
    /// are none.
    pub(crate) fn quantile(&self, q: f64) -> f64 {
        let rank = (q.clamp(0.0, 1.0) * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn max(&self) -> f64 {
        self.quantile(1.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// `p50 0.61, p99 1.92, max 4.10 ms`
    pub(crate) fn summary_ms(&self) -> String {
        let [p50, p99, max] = [self.quantile(0.5), self.quantile(0.99), self.max()];
        format!("p50 {p50:.2}, p99 {p99:.2}, max {max:.2} ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let hundred = Sorted::new((1..=100).rev().map(f64::from).collect());
        for (q, expected) in [(0.0, 1.0), (0.01, 1.0), (0.5, 50.0), (0.505, 51.0), (0.99, 99.0), (1.0, 100.0)]
        {
            assert_eq!(hundred.quantile(q), expected, "q = {q}");
        }
    }

    #[test]
    fn one_value_is_every_quantile_and_none_is_not_a_number() {
        let one = Sorted::new(vec![7.0]);
        assert_eq!([one.quantile(0.0), one.quantile(0.5), one.max()], [7.0; 3]);
        assert!(Sorted::default().quantile(0.5).is_nan());
    }

    #[test]
    fn a_summary_names_its_unit() {
        let sorted = Sorted::new(vec![0.5, 0.25, 2.0]);
        assert_eq!(sorted.summary_ms(), "p50 0.50, p99 2.00, max 2.00 ms");
    }
}
