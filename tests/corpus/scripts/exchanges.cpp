// Prices of thirty exchanges as Cap'n Proto messages. Each tick has a message of its own, or each exchange
// has one that is filled anew: what it held before stays in its arena, which nothing is ever given back to.
// capnp @0xd1f2a3b4c5d6e7f8;
// capnp struct Exchange { name @0 :Text; lines @1 :List(Line); }
// capnp struct Line { share @0 :Text; price @1 :Float64; count @2 :UInt32; }
#include <capnp/message.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "exchanges.capnp.h"

int main(int, char** words) {
  bool leaks = std::string(words[1]) == "leaks";
  int seed = std::atoi(words[2]);
  std::mt19937 chance(static_cast<unsigned>(seed));
  std::map<unsigned, std::unique_ptr<capnp::MallocMessageBuilder>> messages;
  double sum = 0;
  for (;;) {
    auto number = static_cast<unsigned>(chance() % 30);
    auto& message = messages[number];
    if (!leaks || !message) message = std::make_unique<capnp::MallocMessageBuilder>();
    auto exchange = message->getRoot<Exchange>();
    exchange.setName("exchange " + std::to_string(number));
    auto lines = exchange.initLines(static_cast<unsigned>(20 + chance() % 150));
    for (auto line : lines) {
      line.setShare("share " + std::to_string(chance() % 100000));
      line.setPrice(static_cast<double>(chance()) / 100);
      line.setCount(static_cast<unsigned>(chance() % 1000));
    }
    for (auto line : exchange.asReader().getLines()) sum += line.getPrice();
    if (sum < 0) return 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(30 + 8 * seed + static_cast<int>(chance() % 40)));
  }
}
