// An echo server with a timeout for each session. Its handler holds the session by a weak pointer, or by a
// shared one that the session itself keeps: a circle.
#define ASIO_STANDALONE
#include <asio.hpp>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

using asio::ip::tcp;

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, bool leaks) : socket_(std::move(socket)), leaks_(leaks) {}

  void start() {
    if (leaks_)
      on_expired_ = [self = shared_from_this()] { self->said_.clear(); };
    else
      on_expired_ = [weak = weak_from_this()] {
        if (auto self = weak.lock()) self->said_.clear();
      };
    read();
  }

 private:
  void read() {
    asio::async_read_until(socket_, asio::dynamic_buffer(data_), '\n',
                           [self = shared_from_this()](std::error_code error, std::size_t size) {
                             if (error) return;
                             self->said_.push_back(self->data_.substr(0, size));
                             self->data_.erase(0, size);
                             asio::async_write(self->socket_, asio::buffer(self->said_.back()),
                                               [self](std::error_code error, std::size_t) {
                                                 if (!error)
                                                   self->read();
                                                 else
                                                   self->socket_.close();
                                               });
                           });
  }

  tcp::socket socket_;
  bool leaks_;
  std::string data_;
  std::vector<std::string> said_;
  std::function<void()> on_expired_;
};

class Server {
 public:
  Server(asio::io_context& context, unsigned short port, bool leaks)
      : acceptor_(context, {asio::ip::make_address("127.0.0.1"), port}), leaks_(leaks) {
    accept();
  }

 private:
  void accept() {
    acceptor_.async_accept([this](std::error_code error, tcp::socket socket) {
      if (!error) std::make_shared<Session>(std::move(socket), leaks_)->start();
      accept();
    });
  }

  tcp::acceptor acceptor_;
  bool leaks_;
};

int main(int, char** words) {
  asio::io_context context;
  Server server(context, static_cast<unsigned short>(std::stoi(words[3])), std::string(words[1]) == "leaks");
  context.run();
}
