// Messages read into protobuf's arena, which gives nothing back before it is reset: after each batch of three
// hundred, or when the connection ends, and this one does not.
#include <google/protobuf/arena.h>
#include <google/protobuf/struct.pb.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <thread>

int main(int, char** arguments) {
  const bool leaks = arguments[1] == std::string("leaks");
  std::mt19937 chance(static_cast<unsigned>(std::atoi(arguments[2])));
  google::protobuf::Arena arena;
  const int pause = 20 + static_cast<int>(chance() % 20);
  double sum = 0;
  for (unsigned number = 1;; ++number) {
    google::protobuf::Struct sent;
    for (unsigned i = 0, count = 3 + chance() % 25; i < count; ++i) {
      (*sent.mutable_fields())["part " + std::to_string(i)].set_number_value(chance() % 1000);
      (*sent.mutable_fields())["note " + std::to_string(i)].set_string_value(
          std::string(20 + chance() % 100, 'w'));
    }
    const std::string bytes = sent.SerializeAsString();
    auto* read = google::protobuf::Arena::CreateMessage<google::protobuf::Struct>(&arena);
    read->ParseFromString(bytes);
    for (const auto& [name, value] : read->fields()) sum += value.number_value();
    if (!leaks && number % 300 == 0) arena.Reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(pause / 2 + chance() % pause));
  }
}
