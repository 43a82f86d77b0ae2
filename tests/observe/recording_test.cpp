#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "observe/fields.h"
#include "plimsoll/error.h"
#include "plimsoll/observe.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

// Every figure different, so that two that are swapped are noticed.
Sample full_sample(double seconds) {
  Sample sample;
  sample.seconds = seconds;
  sample.iteration = 7;
  sample.exact = false;
  int64_t next = 1;
  for_each_process_field(sample.process, [&](const char*, int64_t& value) { value = next++ << 20; });
  sample.container.emplace();
  sample.container->version = 2;
  sample.container->path = "/a\"b\\c";
  for_each_container_field(*sample.container, [&](const char*, int64_t& value) { value = next++ << 20; });
  sample.container->pressure_some_avg10 = 1.25;
  return sample;
}

Verdict leak() {
  Verdict verdict;
  verdict.kind = VerdictKind::kLeak;
  verdict.cause = Cause::kLiveHeap;
  verdict.bytes_per_second = 1024.5;
  verdict.bytes_per_iteration = 12.25;
  verdict.low = 11, verdict.high = 13, verdict.confidence = 0.99, verdict.seconds_needed = 3;
  verdict.evidence = {"heap grew by 1 MiB", "<script>"};
  return verdict;
}

std::string recording_text() {
  RecordingHeader header;
  header.command = {"python3", "-c", "a\nb"};
  header.pid = 42;
  header.name = "python3";
  header.started = "2026-11-16T00:30:00Z";
  header.interval_seconds = 0.5;
  header.facts = {{"kernel", "6.18"}};
  Sample gap;
  gap.seconds = 2, gap.gap = true, gap.gap_reason = "stopped";
  MemoryAccount account;
  account.process = {{"heap", 5, 4, "malloc_trim"}};
  account.cached_files = {{"/x", 6, 6, "memory.reclaim"}};
  account.process_unexplained_bytes = -7;
  account.notes = {"a note"};
  account.sample = full_sample(3);
  std::string text;
  for (const std::string& line : {ToJson(header), ToJson(full_sample(1)), ToJson(gap), ToJson(full_sample(3)),
                                  ToJson(account), NoteToJson("one"), ToJson(leak())})
    text += line + "\n";
  return text;
}

std::string error_of(const std::string& text) {
  try {
    ParseRecording(text, "r.jsonl");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "(no error)";
}

TEST(Recording, KeepsEverything) {
  const Recording recording = ParseRecording(recording_text(), "r.jsonl");
  EXPECT_EQ(recording.note, "");
  EXPECT_EQ(recording.header.command, (std::vector<std::string>{"python3", "-c", "a\nb"}));
  EXPECT_EQ(recording.header.pid, 42);
  EXPECT_EQ(recording.header.interval_seconds, 0.5);
  EXPECT_EQ(recording.header.facts.at("kernel"), "6.18");
  ASSERT_EQ(recording.samples.size(), 3u);
  EXPECT_TRUE(recording.samples[1].gap);
  EXPECT_EQ(recording.samples[1].gap_reason, "stopped");
  EXPECT_EQ(recording.account->process[0].returns_by, "malloc_trim");
  EXPECT_EQ(recording.account->process_unexplained_bytes, -7);
  EXPECT_EQ(recording.account->sample.seconds, 3);
  EXPECT_EQ(recording.notes, std::vector<std::string>{"one"});
  EXPECT_EQ(recording.verdict->kind, VerdictKind::kLeak);
  EXPECT_EQ(recording.verdict->cause, Cause::kLiveHeap);
  EXPECT_EQ(recording.verdict->bytes_per_iteration, 12.25);
  EXPECT_EQ(recording.verdict->evidence[1], "<script>");
  // Figures: what is read and written again is the same text.
  EXPECT_EQ(ToJson(recording.samples[0]), ToJson(full_sample(1)));
  EXPECT_EQ(ToJson(*recording.verdict), ToJson(leak()));
  EXPECT_EQ(ToJson(*recording.account).substr(0, 12), "{\"account\":{");
}

TEST(Recording, CutAnywhereIsReadUpToTheCut) {
  const std::string text = recording_text();
  const size_t header = text.find('\n');
  for (size_t length = header; length < text.size() - 1; ++length) {
    const std::string_view part = std::string_view(text).substr(0, length);
    const Recording recording = ParseRecording(part, "r.jsonl");
    const size_t newlines = static_cast<size_t>(std::count(part.begin(), part.end(), '\n'));
    // A line that lacks only its newline is complete.
    const size_t lines = newlines + (text[length] == '\n' ? 1 : 0);
    EXPECT_EQ(recording.samples.size(), std::min<size_t>(lines - 1, 3)) << length;
    EXPECT_EQ(recording.note.empty(), recording.verdict.has_value()) << length;
  }
}

TEST(Recording, WrongLinesAreNamed) {
  const std::string header = ToJson(RecordingHeader{}) + "\n";
  const std::string sample = ToJson(full_sample(1)) + "\n";
  EXPECT_THAT(error_of(""), HasSubstr("empty"));
  EXPECT_THAT(error_of("{\"for"), HasSubstr("line 1 is not a JSON object"));
  EXPECT_THAT(error_of("[]\n"), HasSubstr("line 1"));
  EXPECT_THAT(error_of(sample), HasSubstr("not a recording"));
  EXPECT_THAT(error_of(header + "nonsense\n" + sample), HasSubstr("line 2"));
  EXPECT_THAT(error_of(header + ToJson(full_sample(2)) + "\n" + sample),
              HasSubstr("line 3: a sample of 1 s"));
  EXPECT_THAT(error_of(header + "{\"seconds\":1}\n"), HasSubstr("'process' is missing"));
  EXPECT_THAT(error_of(header + "{\"seconds\":-1,\"process\":{}}\n"), HasSubstr("found -1"));
  EXPECT_THAT(error_of(header + "{\"seconds\":1,\"process\":{\"heap_bytes\":1.5}}\n"), HasSubstr("1.5"));
  EXPECT_THAT(error_of(header + "{\"seconds\":1,\"process\":{\"heap_bytes\":18446744073709551615}}\n"),
              HasSubstr("heap_bytes"));
  EXPECT_THAT(error_of(header + "{\"verdict\":\"good\"}\n"), HasSubstr("'good'"));
  EXPECT_THAT(error_of(header + ToJson(leak()) + "\n" + sample), HasSubstr("after the verdict"));
  EXPECT_THAT(error_of("{\"plimsoll_recording\":9}\n"), HasSubstr("version 9"));
}

TEST(Recording, DeepNestingAndEndlessLinesAreRefused) {
  const std::string header = ToJson(RecordingHeader{}) + "\n";
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  EXPECT_THAT(error_of("{\"plimsoll_recording\":" + deep + "}\n"), HasSubstr("found an array"));
  EXPECT_THAT(error_of(header + "{\"seconds\":" + deep + ",\"process\":{}}\n"), HasSubstr("found an array"));
  EXPECT_THAT(error_of(header + std::string(size_t{17} << 20, ' ') + "{}\n"), HasSubstr("line 2 has"));
}

TEST(Recording, WhatIsNotUtf8OrNotANumberIsStillJson) {
  RecordingHeader header;
  header.command = {"\xff\xfe\x1b[31m"};
  Verdict verdict;
  verdict.low = std::numeric_limits<double>::quiet_NaN();
  verdict.high = std::numeric_limits<double>::infinity();
  const Recording recording = ParseRecording(ToJson(header) + "\n" + ToJson(verdict) + "\n", "r.jsonl");
  EXPECT_THAT(recording.header.command.at(0), HasSubstr("[31m"));
  EXPECT_EQ(recording.verdict->low, 0);
}

// Whatever the bytes, an Error or a recording.
TEST(Recording, MutatedBytesNeverCrash) {
  const std::string text = recording_text();
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string mutated = text;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits)
      mutated[random() % mutated.size()] = static_cast<char>("0{}[]\",:-e9\n\xff"[random() % 13]);
    try {
      ParseRecording(mutated, "r.jsonl");
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_THROW(SampleFromJson(std::string(100000, '[')), Error);
}

}  // namespace
}  // namespace plimsoll
