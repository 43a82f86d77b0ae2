#include "arguments.h"

#include <CLI/CLI.hpp>

namespace plimsoll::cli {
namespace {

// An empty text is a variable of a script that was never set: without a word it would be no limit, or no
// file.
std::string nothing_given(const std::string& text) {
  return text.empty() ? "expected a value, found an empty one" : "";
}

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::range(int low, int high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option& Option::range(double low, double high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option& Option::not_negative() {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Option& Option::one_of(std::initializer_list<const char*> words) {
  option_->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())));
  return *this;
}

Option& Option::check(std::string (*wrong)(const std::string&)) {
  option_->check(wrong);
  return *this;
}

Option& Option::one_value_each() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Arguments Arguments::add_command(const char* name, const char* description) {
  return Arguments(app_->add_subcommand(name, description));
}

void Arguments::require_command() {
  app_->require_subcommand(1);
}

Option Arguments::add_option(const char* name, std::string& value, const char* help) {
  return Option(app_->add_option(name, value, help)->check(nothing_given));
}

Option Arguments::add_option(const char* name, int& value, const char* help) {
  return Option(app_->add_option(name, value, help));
}

Option Arguments::add_option(const char* name, int64_t& value, const char* help) {
  return Option(app_->add_option(name, value, help));
}

Option Arguments::add_option(const char* name, uint64_t& value, const char* help) {
  return Option(app_->add_option(name, value, help));
}

Option Arguments::add_option(const char* name, double& value, const char* help) {
  return Option(app_->add_option(name, value, help));
}

Option Arguments::add_option(const char* name, std::vector<std::string>& values, const char* help) {
  return Option(app_->add_option(name, values, help)->check(nothing_given));
}

Option Arguments::add_flag(const char* name, bool& value, const char* help) {
  return Option(app_->add_flag(name, value, help));
}

Option Arguments::add_flag(const char* name, std::string& value, const char* help) {
  return Option(app_->add_flag(name, value, help));
}

void Arguments::footer(const char* text) {
  app_->footer(text);
}

bool Arguments::is_given() const {
  return app_->parsed();
}

CommandLine::CommandLine(const char* name, const char* description, const char* version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->set_version_flag("--version", version);
  app_->failure_message(CLI::FailureMessage::simple);
}

CommandLine::~CommandLine() = default;

CommandLine::Outcome CommandLine::parse(int argc, const char* const* argv, std::string& message) {
  try {
    app_->parse(argc, argv);
    return Outcome::kParsed;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app_->exit(error);
      return Outcome::kAnswered;
    }
    message = error.what();
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && app_->get_subcommands().empty())
      return Outcome::kNoCommand;
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return Outcome::kUnexpected;
    return Outcome::kWrong;
  }
}

}  // namespace plimsoll::cli
