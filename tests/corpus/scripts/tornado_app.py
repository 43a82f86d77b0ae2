"""Long polls: waiters that went away stay in the set, or are taken out."""
import sys

import tornado.ioloop
import tornado.web

form, port = sys.argv[1], int(sys.argv[2])
waiters = {}


class Poll(tornado.web.RequestHandler):
    def get(self):
        waiters[id(self), self.request.request_time()] = self
        self.write({"n": 1, "text": "x" * 2000})

    def on_finish(self):
        if form == "steady":
            waiters.clear()


tornado.web.Application([(r"/.*", Poll)]).listen(port, "127.0.0.1")
tornado.ioloop.IOLoop.current().start()
