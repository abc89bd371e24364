"""A mail server for tests: says the port, then every mail it takes as a line of JSON.

Arguments: tls | starttls | none, and for the first two the certificate and the key.
"""

import asyncio
import base64
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


class Taking:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody@"):
            return "550 no such user"
        if address.startswith("later@"):
            return "451 come again"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        said = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "user": (session.auth_data or b"").decode(),
            "encrypted": server.transport.get_extra_info("ssl_object") is not None,
            "id": mail["message-id"],
            "subject": mail["subject"],
            "text": mail.get_body(("plain",)).get_content(),
            "html": mail.get_body(("html",)).get_content(),
        }
        print(json.dumps(said), flush=True)
        return "250 taken"


def authenticate(server, session, envelope, mechanism, data):
    good = data.login == b"stakeout" and data.password == b"correct horse"
    # Some servers repeat to whoever they refuse what they were told, in every form.
    plain = b"\0" + data.login + b"\0" + data.password
    said = [data.login, data.password, *map(base64.b64encode, (data.login, data.password, plain))]
    refused = "535 not right: " + " ".join(part.decode() for part in said)
    return AuthResult(success=good, handled=False, auth_data=data.login, message=None if good else refused)


async def main():
    mode, *files = sys.argv[1:]
    context = None
    if files:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*files)

    def connection():
        secured = mode != "none"
        options = {"authenticator": authenticate, "auth_required": True} if secured else {}
        if mode == "starttls":
            options |= {"tls_context": context, "require_starttls": True}
        elif mode == "tls":
            options |= {"auth_require_tls": False}
        return SMTP(Taking(), enable_SMTPUTF8=True, **options)

    outer = context if mode == "tls" else None
    server = await asyncio.get_running_loop().create_server(connection, "localhost", 0, ssl=outer, family=2)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Whoever started us says by closing our input that we may go.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
