// The command line: commands, their options, what is checked about them, and the help that shows all of it.
// CLI11 stands behind this and is included by arguments.cpp alone: its header takes ten seconds to compile.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace plimsoll::cli {

// An option or flag that was declared. Its name is a word where it goes by its position; "--name{value}" is a
// flag that stands for a value.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& required();
  Option& range(int low, int high);
  Option& range(double low, double high);
  Option& not_negative();
  Option& one_of(std::initializer_list<const char*> words);
  // A function that returns what is wrong with the text, or nothing.
  Option& check(std::string (*wrong)(const std::string&));
  Option& one_value_each();  // of a list: what follows the first value is not another one
  Option& show_default();
  Option& needs(const Option& other);

 private:
  CLI::Option* option_;
};

// What one command takes. A value that is not given stays as it is; it lives at least until the line is
// parsed.
class Arguments {
 public:
  explicit Arguments(CLI::App* app) : app_(app) {}

  Arguments add_command(const char* name, const char* description);
  void require_command();  // exactly one of those that were added
  Option add_option(const char* name, std::string& value, const char* help);
  Option add_option(const char* name, int& value, const char* help);
  Option add_option(const char* name, int64_t& value, const char* help);
  Option add_option(const char* name, uint64_t& value, const char* help);
  Option add_option(const char* name, double& value, const char* help);
  Option add_option(const char* name, std::vector<std::string>& values, const char* help);
  Option add_flag(const char* name, bool& value, const char* help);
  Option add_flag(const char* name, std::string& value, const char* help);
  void footer(const char* text);  // below the options in the help
  bool is_given() const;          // whether the line asks for this command

 private:
  CLI::App* app_;
};

class CommandLine {
 public:
  CommandLine(const char* name, const char* description, const char* version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Arguments arguments() { return Arguments(app_.get()); }

  enum class Outcome {
    kParsed,
    kAnswered,    // help or the version was asked for and printed
    kNoCommand,   // none is given, or one that does not exist
    kUnexpected,  // arguments that nothing takes
    kWrong,
  };
  // `message` is for all that is not as it should be.
  Outcome parse(int argc, const char* const* argv, std::string& message);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace plimsoll::cli
