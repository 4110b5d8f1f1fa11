#!/usr/bin/env python3
"""server.py FOLDER - serves a folder over HTTP on a free port of 127.0.0.1, with ranges, and with faults on demand.

Prints the port, and serves until its standard input ends, so that it never outlives a test.  Invariant: which answers
are faulty depends on the requests alone, never on time.

GET /-/fault?kind=KIND&match=TEXT&count=N   the next N answers (0: all) to paths with TEXT are faulty
GET /-/sign?key=KEY&secret=SECRET&token=TOKEN  from now on requests must be signed so (AWS Signature 4); no key: not
GET /-/bearer?token=TOKEN                   ... must have this bearer token
GET /-/redirect?match=TEXT&to=URL           paths with TEXT are elsewhere
GET /-/forget                               uploads in parts that are not complete are over
GET /-/log                                  "STATUS BYTES PATH RANGE AUTHORIZED", a line for each answer; empties it
"""
import hashlib
import hmac
import http.server
import os
import socket
import struct
import sys
import threading
import time
import urllib.parse

CUT_ABOVE = 1000  # bytes: otherwise the last one would never come
PAGE = b"<html><body>Please sign in</body></html>"
ERRORS = {"503": 503, "429": 429, "500": 500, "408": 408}
REFUSALS = {"401": (401, ""), "403": (403, "AccessDenied"), "404": (404, "NoSuchKey"), "expired": (400, "ExpiredToken")}

lock = threading.Lock()
faults = []  # [kind, match, left or None]
log = []
metas = {}  # x-amz-meta-sha256 of what was PUT
uploads = {}  # id of an upload in parts: [path, meta, {number: bytes}]
rules = {"sign": None, "bearer": None, "redirect": None}  # queries


def hmac256(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(handler, secret, scope, signed):
    """What AWS Signature 4 asks for: docs.aws.amazon.com, "Create a signed AWS API request"."""
    url = urllib.parse.urlsplit(handler.path)
    date, region, service, _ = scope.split("/")
    canonical = "\n".join(
        [handler.command, url.path, url.query]
        + [f"{name}:{' '.join((handler.headers[name] or '').split())}" for name in signed.split(";")]
        + ["", signed, handler.headers.get("x-amz-content-sha256") or hashlib.sha256(b"").hexdigest()]
    )
    to_sign = "\n".join(["AWS4-HMAC-SHA256", handler.headers["x-amz-date"], scope,
                         hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac256(key, part)
    return hmac256(key, to_sign).hex()


def take_fault(path):
    with lock:
        for fault in faults:
            if fault[1] in path and fault[2] != 0:
                if fault[2] is not None:
                    fault[2] -= 1
                return fault[0]
    return ""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one segment

    def log_message(self, *args):
        pass

    def answer(self, status, body, headers=(), length=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        with lock:
            log.append(f"{status} {len(body)} {self.path} {self.headers.get('Range', '-')} "
                       f"{'yes' if 'Authorization' in self.headers else 'no'}")

    def hang_up(self, reset=False):
        self.wfile.flush()
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def control(self, path, query):
        with lock:
            if path == "/-/log":
                text = "\n".join(log)
                log.clear()
            elif path == "/-/forget":
                uploads.clear()
                text = ""
            elif path[3:] in rules:
                rules[path[3:]] = {name: values[0] for name, values in query.items()}
                text = ""
            elif query.get("kind") == ["none"]:
                faults.clear()
                for name in rules:
                    rules[name] = None
                text = ""
            else:
                count = int(query.get("count", ["0"])[0])
                faults.insert(0, [query["kind"][0], query.get("match", [""])[0], count or None])
                text = ""
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refusal(self):
        """Why the request is not permitted; "": it is."""
        given = self.headers.get("Authorization", "")
        if rules["bearer"]:
            return "" if given == "Bearer " + rules["bearer"]["token"] else "Unauthorized"
        if not rules["sign"]:
            return ""
        rule = rules["sign"]
        if not given.startswith("AWS4-HMAC-SHA256 "):
            return "AccessDenied"
        fields = dict(field.strip().split("=", 1) for field in given.split(" ", 1)[1].split(","))
        key, scope = fields["Credential"].split("/", 1)
        if key != rule["key"]:
            return "InvalidAccessKeyId"
        if rule.get("token", "") != self.headers.get("x-amz-security-token", ""):
            return "InvalidToken"
        if rule.get("region", scope.split("/")[1]) != scope.split("/")[1]:
            return "AuthorizationHeaderMalformed"
        if any(name not in self.headers for name in fields["SignedHeaders"].split(";")):
            return "SignatureDoesNotMatch"
        good = signature(self, rule["secret"], scope, fields["SignedHeaders"])
        return "" if good == fields["Signature"] else "SignatureDoesNotMatch"

    def part(self, data):
        """The bytes that Range asks for, and where they start; None: there are none."""
        text = self.headers.get("Range", "")
        if not text.startswith("bytes="):
            return 0, data
        first, _, last = text[6:].partition("-")
        start, end = int(first), int(last) + 1 if last else len(data)
        return (None, b"") if start >= len(data) else (start, data[start:end])

    def faulty(self, kind, status, body, headers):
        if kind in ERRORS:
            self.answer(ERRORS[kind], b"busy", [("Retry-After", "1")] if kind == "429" else [])
        elif kind in REFUSALS:
            status, code = REFUSALS[kind]
            self.answer(status, f"<Error><Code>{code}</Code></Error>".encode() if code else b"")
        elif kind == "page":
            self.answer(200, PAGE, [("Content-Type", "text/html; charset=utf-8")])
        elif kind in ("cut", "reset") and len(body) > CUT_ABOVE:
            self.answer(status, body[: len(body) // 2], headers, len(body))
            self.hang_up(kind == "reset")
        elif kind in ("cut", "reset"):
            self.answer(status, body, headers)
        elif kind == "stall":
            self.answer(status, body[: len(body) // 2], headers, len(body))
            self.wfile.flush()
            time.sleep(3600)
        elif kind == "silent":
            time.sleep(3600)
        elif kind == "short":
            self.answer(status, body[: len(body) // 2], headers)
        elif kind == "flip":
            at = len(body) // 2
            self.answer(status, body[:at] + bytes([body[at] ^ 16]) + body[at + 1 :], headers)
        elif kind == "as200":  # a range with the status of a whole file
            self.answer(200, body, headers)
        elif kind == "bare200":  # the same, and no Content-Range
            self.answer(200, body)
        elif kind == "chunked":  # of a length that is not told
            self.send_response(status)
            for name, value in headers + [("Transfer-Encoding", "chunked")]:
                self.send_header(name, value)
            self.end_headers()
            for at in range(0, len(body), 65536):
                piece = body[at : at + 65536]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
        elif kind == "slow":
            self.answer(status, b"", headers, len(body))
            for at in range(0, len(body), 4096):
                self.wfile.write(body[at : at + 4096])
                self.wfile.flush()
                time.sleep(0.002)
        else:
            raise ValueError(kind)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path)
        if path.startswith("/-/"):
            return self.control(path, urllib.parse.parse_qs(url.query))
        code = self.refusal()
        if code:
            return self.answer(403, f"<Error><Code>{code}</Code></Error>".encode())
        redirect = rules["redirect"]
        if redirect and redirect["match"] in path:
            return self.answer(302, b"", [("Location", redirect["to"])])
        query = urllib.parse.parse_qs(url.query)
        if "uploadId" in query:
            return self.list_parts(query)
        kind = take_fault(path)
        if kind == "whole":  # ranges are not known here
            del self.headers["Range"]
            kind = ""
        try:
            with open(os.path.join(sys.argv[1], path.lstrip("/")), "rb") as file:
                data = file.read()
        except OSError:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        start, body = self.part(data)
        if start is None:
            return self.answer(416, b"")
        ranged = "Range" in self.headers
        headers = [("ETag", f'"{len(data)}-{hash(data)}"')]
        if ranged:
            headers.append(("Content-Range", f"bytes {start}-{start + len(body) - 1}/{len(data)}"))
        status = 206 if ranged else 200
        if kind:
            return self.faulty(kind, status, body, headers)
        return self.answer(status, body, headers)


    def upload_of(self, query):
        """The upload in parts that a query names; None: it is over."""
        found = uploads.get(query["uploadId"][0])
        return found if found and found[0] == urllib.parse.unquote(urllib.parse.urlsplit(self.path).path) else None

    def list_parts(self, query):
        """At most two a page."""
        found = self.upload_of(query)
        if not found:
            return self.answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
        after = int(query.get("part-number-marker", ["0"])[0])
        numbers = [number for number in sorted(found[2]) if number > after]
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{hashlib.md5(found[2][number]).hexdigest()}&quot;</ETag>"
            f"<Size>{len(found[2][number])}</Size></Part>"
            for number in numbers[:2]
        )
        more = len(numbers) > 2
        page = f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        page += f"<NextPartNumberMarker>{numbers[1]}</NextPartNumberMarker>" if more else ""
        return self.answer(200, f"<ListPartsResult>{page}{parts}</ListPartsResult>".encode())

    def do_POST(self):
        url = urllib.parse.urlsplit(self.path)
        path, query = urllib.parse.unquote(url.path), urllib.parse.parse_qs(url.query, keep_blank_values=True)
        kind = take_fault(path + "?" + url.query)
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        code = self.refusal()
        if code:
            return self.answer(403, f"<Error><Code>{code}</Code></Error>".encode())
        if kind in ERRORS:
            return self.answer(ERRORS[kind], b"busy")
        if kind == "error200":  # as S3 does while it joins parts
            return self.answer(200, b"<Error><Code>InternalError</Code></Error>")
        if "uploads" in query:
            name = f"id {len(uploads)}+/="
            uploads[name] = [path, self.headers.get("x-amz-meta-sha256", ""), {}]
            return self.answer(200, f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>".encode())
        found = self.upload_of(query)
        if not found:
            return self.answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
        wanted = "".join(
            f'<Part><PartNumber>{number}</PartNumber><ETag>"{hashlib.md5(part).hexdigest()}"</ETag></Part>'
            for number, part in sorted(found[2].items())
        )
        if body != f"<CompleteMultipartUpload>{wanted}</CompleteMultipartUpload>":
            return self.answer(400, b"<Error><Code>InvalidPart</Code></Error>")
        os.makedirs(os.path.dirname(sys.argv[1] + path), exist_ok=True)
        with open(sys.argv[1] + path, "wb") as file:
            file.write(b"".join(part for _, part in sorted(found[2].items())))
        metas[path] = found[1]
        del uploads[query["uploadId"][0]]
        return self.answer(200, b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")

    def do_HEAD(self):
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        kind = take_fault(path)
        code = 403 if self.refusal() else ERRORS.get(kind, 200)
        try:
            with open(sys.argv[1] + path, "rb") as file:
                size = len(file.read())
        except OSError:
            code, size = 404, 0
        headers = [("x-amz-meta-sha256", metas[path])] if path in metas else []
        self.answer(code, b"", headers, size)

    def do_PUT(self):
        url = urllib.parse.urlsplit(self.path)
        path, query = urllib.parse.unquote(url.path), urllib.parse.parse_qs(url.query)
        length = int(self.headers["Content-Length"])
        kind = take_fault(path + "?" + url.query if url.query else path)
        if kind in ("cut", "reset"):
            self.rfile.read(length // 2)
            return self.hang_up(kind == "reset")
        body = self.rfile.read(length)
        code = self.refusal()
        if code:
            return self.answer(403, f"<Error><Code>{code}</Code></Error>".encode())
        if kind in ERRORS:
            return self.answer(ERRORS[kind], b"busy")
        if kind == "flip":  # on the way here
            body = body[: length // 2] + bytes([body[length // 2] ^ 16]) + body[length // 2 + 1 :]
        stated = self.headers.get("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
        if stated not in ("UNSIGNED-PAYLOAD", hashlib.sha256(body).hexdigest()):
            return self.answer(400, b"<Error><Code>XAmzContentSHA256Mismatch</Code></Error>")
        if "uploadId" in query:
            found = self.upload_of(query)
            if not found:
                return self.answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
            found[2][int(query["partNumber"][0])] = body
            return self.answer(200, b"", [("ETag", f'"{hashlib.md5(body).hexdigest()}"')])
        os.makedirs(os.path.dirname(sys.argv[1] + path), exist_ok=True)
        with open(sys.argv[1] + path, "wb") as file:
            file.write(body)
        metas[path] = self.headers.get("x-amz-meta-sha256", "")
        return self.answer(200, b"")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # clients hang up when they have enough


def main():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


main()
