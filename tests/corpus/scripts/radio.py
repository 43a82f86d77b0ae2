"""A radio station that sends as fast as is heard: WAV without an end, of a tone with some noise."""
import http.server
import random
import struct
import sys
import time

port, seed, rate = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(seed)


class Station(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "audio/wav")
        self.end_headers()
        self.wfile.write(b"RIFF\xff\xff\xff\xffWAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 2, rate, rate * 4, 4, 16) + b"data\xff\xff\xff\xff")
        started, sent = time.monotonic(), 0
        while True:
            self.wfile.write(chance.randbytes(rate // 5 * 4))
            sent += 0.2
            time.sleep(max(0, started + sent - 1.5 - time.monotonic()))

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", port), Station).serve_forever()
