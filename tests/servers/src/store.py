"""A store of objects for tests: S3 with verified signatures, and Swift with a token. Objects are in memory.

Usage: store.py PORT LOG. Every request is a line of JSON in LOG. It is written from Amazon's documentation of version 4 of
its signatures, and checks itself with the examples published there before it serves anything.
"""

import base64
import datetime
import hashlib
import hmac
import http.server
import json
import sys
import urllib.parse

KEYS = {"AKIAIOSFODNN7EXAMPLE": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
TOKEN = "AUTH_tk0123456789"


def signature(secret, day, region, method, path, query, headers, body_hash, date):
    """The signature of a request; headers are pairs, in the order in which they are signed."""
    pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
    quoted = sorted((urllib.parse.quote(name, safe="-_.~"), urllib.parse.quote(value, safe="-_.~")) for name, value in pairs)
    canonical = "\n".join([
        method,
        urllib.parse.quote(urllib.parse.unquote_to_bytes(path), safe="/-_.~"),
        "&".join(f"{name}={value}" for name, value in quoted),
        "".join(f"{name}:{value.strip()}\n" for name, value in headers),
        ";".join(name for name, _ in headers),
        body_hash,
    ])
    scope = f"{day}/{region}/s3/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}"
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def check_examples():
    """Amazon's own examples."""
    secret = KEYS["AKIAIOSFODNN7EXAMPLE"]
    host, date, empty = "examplebucket.s3.amazonaws.com", "20130524T000000Z", hashlib.sha256(b"").hexdigest()
    get = [("host", host), ("range", "bytes=0-9"), ("x-amz-content-sha256", empty), ("x-amz-date", date)]
    of = lambda *rest: signature(secret, "20130524", "us-east-1", *rest, date)
    assert of("GET", "/test.txt", "", get, empty) == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    body = hashlib.sha256(b"Welcome to Amazon S3.").hexdigest()
    put = [("date", "Fri, 24 May 2013 00:00:00 GMT"), ("host", host), ("x-amz-content-sha256", body),
           ("x-amz-date", date), ("x-amz-storage-class", "REDUCED_REDUNDANCY")]
    assert of("PUT", "/test%24file.text", "", put, body) == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
    lifecycle = [("host", host), ("x-amz-content-sha256", empty), ("x-amz-date", date)]
    assert of("GET", "/", "lifecycle", lifecycle, empty) == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects = {}
    keys_of = {}
    log = None

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", chunked=False):
        self.send_response(status)
        self.send_header("Transfer-Encoding" if chunked else "Content-Length", "chunked" if chunked else str(len(body)))
        self.end_headers()
        if not chunked:
            self.wfile.write(body)
            return
        for start in range(0, len(body), 1000):
            part = body[start:start + 1000]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

    def refusal(self, body):
        """Why the request is not authorized; None if it is."""
        if "X-Auth-Token" in self.headers:
            return None if self.headers["X-Auth-Token"] == TOKEN else "token"
        scheme, _, rest = self.headers.get("Authorization", "").partition(" ")
        if scheme != "AWS4-HMAC-SHA256":
            return "no signature"
        parts = dict(part.strip().split("=", 1) for part in rest.split(","))
        key_id, day, region, service, end = parts["Credential"].split("/")
        date, names = self.headers["x-amz-date"], parts["SignedHeaders"].split(";")
        sent = {name.lower() for name in self.headers if name.lower().startswith("x-amz-") or name.lower() == "host"}
        if not sent <= set(names) or names != sorted(names):
            return f"headers that are not signed: {sorted(sent - set(names))}"
        body_hash = hashlib.sha256(body).hexdigest()
        if self.headers["x-amz-content-sha256"] != body_hash:
            return "another body"
        signed_at = datetime.datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        if abs((datetime.datetime.now(datetime.timezone.utc) - signed_at).total_seconds()) > 900 or date[:8] != day:
            return f"another time: {date}"
        if (service, end) != ("s3", "aws4_request") or key_id not in KEYS:
            return "another key"
        path, _, query = self.path.partition("?")
        headers = [(name, self.headers[name]) for name in names]
        expected = signature(KEYS[key_id], day, region, self.command, path, query, headers, body_hash, date)
        return None if hmac.compare_digest(expected, parts["Signature"]) else "another signature"

    def encryption(self):
        """The client's key of encryption; None without one."""
        prefix = "x-amz-server-side-encryption-customer-"
        if prefix + "key" not in self.headers:
            return None
        key = base64.b64decode(self.headers[prefix + "key"])
        digest = base64.b64encode(hashlib.md5(key).digest()).decode()
        assert self.headers[prefix + "algorithm"] == "AES256" and self.headers[prefix + "key-md5"] == digest, "key"
        return key

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        why = self.refusal(body)
        status, answer = (403, f"<Error>{why}</Error>".encode()) if why else self.carried_out(body)
        line = {"method": self.command, "path": self.path, "status": status, "received": len(body), "sent": len(answer),
                "class": self.headers.get("x-amz-storage-class"), "range": self.headers.get("Range"), "why": why}
        Store.log.write(json.dumps(line) + "\n")
        Store.log.flush()
        self.answer(status, answer, chunked="chunked" in self.path)

    def carried_out(self, body):
        if self.command == "PUT":
            Store.objects[self.path], Store.keys_of[self.path] = body, self.encryption()
            return 201 if "X-Auth-Token" in self.headers else 200, b""
        if self.path not in Store.objects:
            return 404, b"<Error><Code>NoSuchKey</Code></Error>"
        if self.command == "DELETE":
            del Store.objects[self.path]
            return 204, b""
        if Store.keys_of[self.path] != self.encryption():
            return 400, b"<Error>another key of encryption</Error>"
        whole, asked = Store.objects[self.path], self.headers.get("Range")
        if asked is None:
            return 200, whole
        first, last = (int(number) for number in asked.removeprefix("bytes=").split("-"))
        return (206, whole[first:last + 1]) if first < len(whole) else (416, b"")

    do_GET = do_PUT = do_DELETE = serve


if __name__ == "__main__":
    check_examples()
    Store.log = open(sys.argv[2], "a", encoding="utf-8")
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Store).serve_forever()
