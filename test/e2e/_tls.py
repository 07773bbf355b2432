"""Certificates made when a test runs, and a client that speaks TLS: for the tests around HTTPS."""
import shutil
import ssl
import subprocess
import tempfile

from _harness import Client, Skip

SERVER_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


class Certificates:
    """A CA and what it signed, as PEM files in a directory that goes with the object."""

    def __init__(self):
        if not shutil.which("openssl"):
            raise Skip("openssl is not installed")
        self.directory = tempfile.TemporaryDirectory(prefix="telltale-tls-")
        self.ca = self.path("ca.pem")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", self.path("ca.key"), "-out", self.ca, "-days", "2",
                "-subj", "/CN=telltale test CA")
        self.certificate, self.key = self.sign("server", SERVER_NAMES)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.directory.cleanup()

    def path(self, name):
        return f"{self.directory.name}/{name}"

    def sign(self, name, names="subjectAltName=DNS:client", days="2", key_type="ec"):
        """(certificate, key): paths."""
        certificate, key, request = (self.path(f"{name}.{kind}") for kind in ("pem", "key", "csr"))
        option = ["-pkeyopt", "ec_paramgen_curve:P-256"] if key_type == "ec" else []
        openssl("req", "-newkey", key_type, *option, "-nodes", "-keyout", key, "-out", request,
                "-subj", f"/CN={name}")
        with open(self.path("extensions"), "w", encoding="ascii") as file:
            file.write(names + "\n")
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.path("ca.key"),
                "-CAcreateserial", "-days", days, "-out", certificate,
                "-extfile", self.path("extensions"))
        return certificate, key

    def options(self):
        return ["--tls-certificate", self.certificate, "--tls-key", self.key]

    def context(self, client=None, alpn=()):
        """client: (certificate, key)"""
        context = ssl.create_default_context(cafile=self.ca)
        if client:
            context.load_cert_chain(*client)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        return context


class TlsClient(Client):
    def __init__(self, port, context, timeout=30, session=None):
        super().__init__(port, timeout)
        try:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost",
                                              session=session, suppress_ragged_eofs=False)
        except BaseException:
            self.socket.close()
            raise

    def has_data(self, seconds):
        return bool(self.socket.pending()) or super().has_data(seconds)
