"""A chat server of Twisted's. Its factory has a list of the clients, which they leave when the connection is lost, or not."""
import gc
import sys

from twisted.internet import protocol, reactor
from twisted.protocols.basic import LineReceiver

form, port = sys.argv[1], int(sys.argv[2])


class Chat(LineReceiver):
    def connectionMade(self):
        self.history = []
        self.factory.clients.append(self)

    def lineReceived(self, line):
        self.history.append(line)
        self.sendLine(b"said: " + line)

    def connectionLost(self, reason=protocol.connectionDone):
        if form == "steady":
            self.factory.clients.remove(self)


factory = protocol.Factory.forProtocol(Chat)
factory.clients = []
reactor.listenTCP(port, factory, interface="127.0.0.1")
gc.freeze()  # what is here stays: a collection has only the clients to look at
gc.collect()
reactor.run()
