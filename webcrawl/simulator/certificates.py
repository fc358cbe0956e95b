"""Certificates made when the server starts: an authority of its own and, on demand, a certificate for each host.

Private keys live in memory and, for the moment in which OpenSSL reads them, in a file of mode 0600.  The authority is
valid for a year and belongs to this run only; a client that verifies certificates can fetch it at /ca.pem.
"""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

if TYPE_CHECKING:
    from collections.abc import Callable

_VALID = timedelta(days=365)


class Certificates:
    """TLS contexts by host name."""

    @cached_property
    def context(self) -> Callable[[str], ssl.SSLContext]:
        """The server-side context of a host; the last 256 are kept."""
        return lru_cache(maxsize=256)(self._make_context)

    @cached_property
    def authority_pem(self) -> bytes:
        """The certificate to trust, for clients that verify."""
        return _pem(self._authority)

    @cached_property
    def _authority_key(self) -> ec.EllipticCurvePrivateKey:
        return _new_key()

    @cached_property
    def _leaf_key(self) -> ec.EllipticCurvePrivateKey:
        return _new_key()

    @cached_property
    def _authority(self) -> x509.Certificate:
        name = _common_name("webcrawl simulator, this run only")
        builder = _builder(name, name, self._authority_key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        key_id = x509.SubjectKeyIdentifier.from_public_key(self._authority_key.public_key())
        builder = builder.add_extension(key_id, critical=False).add_extension(_signs_certificates(), critical=True)
        return builder.sign(self._authority_key, hashes.SHA256())

    def _leaf(self, host: str) -> x509.Certificate:
        builder = _builder(_common_name(host[:64]), self._authority.subject, self._leaf_key)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._authority_key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        return builder.sign(self._authority_key, hashes.SHA256())

    def _make_context(self, host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        with tempfile.NamedTemporaryFile() as file:
            file.write(_key_pem(self._leaf_key) + _pem(self._leaf(host)))
            file.flush()
            context.load_cert_chain(file.name)
        return context


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + _VALID)


def _signs_certificates() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
