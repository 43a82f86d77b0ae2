"""Handlers that subscribe to CherryPy's bus for the time of a request, or for good."""
import sys

import cherrypy

form, port = sys.argv[1], int(sys.argv[2])


class Report:
    def __init__(self, name):
        self.rows = [f"{name} {i} " * 8 for i in range(60)]
        cherrypy.engine.subscribe("reload", self.reload)

    def reload(self):
        self.rows.clear()

    def close(self):
        cherrypy.engine.unsubscribe("reload", self.reload)


class Site:
    @cherrypy.expose
    def default(self, *names):
        report = Report("/".join(names))
        text = "\n".join(report.rows)
        if form == "steady":
            report.close()
        return text


cherrypy.config.update({"server.socket_host": "127.0.0.1", "server.socket_port": port, "log.screen": False, "server.thread_pool": 4,
                        "engine.autoreload.on": False, "checker.on": False})
cherrypy.quickstart(Site())
