// What goes wrong where commands print and write: full disks, closed pipes, devices.
#include <fmt/format.h>

#include <catch.hpp>

#include "commands/app.h"
#include "tests/commands/trained.h"

namespace dgc {
namespace {

using namespace test;
using Catch::Contains;
using Words = std::vector<std::string>;

// `script` runs the program as "$@".
Result in_shell(const Program& dgc, const std::string& script, const Words& arguments) {
  Words words = {"-c", script, "sh", DGC_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  Child child(dgc.folder(), words, "/bin/sh");
  const int code = child.wait();
  return {code, child.out(), child.err()};
}

// The program with a run of images, run, and one of a language, lm.
class TrainedRuns : public Program {
 public:
  TrainedRuns() {
    write_language_model(*this);
    require_trained(*this, {"tiny.json", "--out", "run", "--set", "training.epochs=1"});
    require_trained(*this, {"lm.json", "--out", "lm"});
  }
};

}  // namespace

TEST_CASE("every command says that it could not print, exit code 2") {
  const TrainedRuns dgc;
  const TinySpeech speech;
  train_on_pictures(dgc, "pictures");
  train_on_speech(dgc, speech, "speech");
  dgc.write("study.json", R"({"config": "tiny.json", "seeds": [1], "set": {"training.epochs": 1}, "runs": {"a": {}}})");
  const std::vector<Words> commands = {
      {"--help"},
      {"--version"},
      {"help"},
      {"help", "bench", "train"},
      {"manual"},
      {"completion", "bash"},
      {"completion", "zsh"},
      {"train", "--help"},
      {"config", "tiny.json"},
      {"config", "--schema"},
      {"config", "--reference"},
      {"plan", "tiny.json"},
      {"info"},
      {"eval", "run"},
      {"report", "run"},
      {"report", "run", "--csv", "-"},
      {"generate", "lm"},
      {"predict", "pictures", "animals/val/ant/1.png"},
      {"transcribe", "speech", speech.path("26.wav").string()},
      {"study", "study.json", "--out", "study", "--dry-run"},
      {"study", "study.json", "--out", "study"},
#ifdef DGC_SANITIZED  // 25.6 million parameters are too many
      {"bench", "dgc", "--help"},
#else
      {"bench", "dgc", "--warmup", "0", "--steps", "1"},
#endif
      {"bench", "convolutions", "--help"},  // all else needs a GPU
      {"bench", "data", "tiny.json", "--seconds", "0.001"},
      {"bench", "train", "tiny.json", "--warmup", "0", "--steps", "1", "--repeats", "1"},
      {"train", "tiny.json", "--out", "full", "--set", "training.epochs=1"}};
  const auto app = make_app();
  for (const Command& command : commands_of(*app)) {
    const auto is_tried = [&](const Words& words) {
      return fmt::format("dgc {} ", fmt::join(words, " ")).starts_with(command.name + " ");
    };
    INFO(command.name << " is not tried here");
    CHECK(std::ranges::any_of(commands, is_tried));
  }
  for (const Words& command : commands) {
    CAPTURE(command);
    const Result full = in_shell(dgc, "exec \"$@\" >/dev/full", command);
    CHECK(full.code == 2);
    CHECK_THAT(full.err, Catch::EndsWith("error: standard output cannot be written: No space left on device\n"));
  }
  CHECK(dgc.rows("full").back().text("kind") == "final");
  const Result again = in_shell(dgc, "exec \"$@\" >&-", {"train", "tiny.json", "--out", "closed"});
  CHECK(again.code == 2);
  CHECK_THAT(again.err, Contains("error: standard output cannot be written: "));
  for (const Row& row : dgc.rows("closed")) CHECK(row.text("kind").has_value());  // nothing was printed into a file
  CHECK(in_shell(dgc, "exec \"$@\" <&- >&- 2>&-", {"info"}).code == 2);
}

TEST_CASE("a study whose reader has gone ends as any command does, with its report written") {
  const Program dgc;
  dgc.write("study.json", R"({"config": "tiny.json", "seeds": [1], "set": {"training.epochs": 1}, "runs": {"a": {}}})");
  constexpr int kBrokenPipe = 128 + SIGPIPE;
  const auto code_of = [&](const Words& arguments) {
    const Result piped = in_shell(dgc, "{ \"$@\"; echo $? >code; } 2>&1 | true", arguments);
    INFO(piped.err);
    return std::stoi(dgc.read("code"));
  };
  CHECK(code_of({"study", "study.json", "--out", "out", "--dry-run"}) == kBrokenPipe);
  CHECK(code_of({"study", "study.json", "--out", "out"}) == kBrokenPipe);
  CHECK(dgc.rows("out/a/seed1").back().text("kind") == "final");
  CHECK_THAT(dgc.read("out/report.html"), Contains("</html>"));
}

TEST_CASE("a report that does not fit on the disk leaves the old one") {
  const TrainedRuns dgc;
  dgc.write("report.html", "old");
  // Of 512 bytes; what is beyond is refused, as on a full disk.
  const Result full = in_shell(dgc, "ulimit -f 4; exec \"$@\"", {"report", "run", "-o", "report.html"});
  CHECK(full.code == 2);
  CHECK(full.err == "error: cannot write report.html: File too large\n");
  CHECK(dgc.read("report.html") == "old");
  CHECK(dgc.run({"report", "run", "-o", "report.html"}).code == 0);
  CHECK_THAT(dgc.read("report.html"), Catch::StartsWith("<!doctype html>"));
}

TEST_CASE("a report may go to a device, a pipe or where the table goes") {
  const TrainedRuns dgc;
  const Words to_stdout = {"report", "run", "-o", "/dev/stdout"};
  for (const char* script : {"\"$@\" | cat", "exec \"$@\""}) {
    CAPTURE(script);
    const Result both = in_shell(dgc, script, to_stdout);
    CHECK(both.code == 0);
    CHECK_THAT(both.out, Catch::StartsWith("<!doctype html>") && Contains("</html>\n") &&
                             Catch::EndsWith("report: /dev/stdout\n"));
  }
  CHECK(dgc.run({"report", "run", "-o", "/dev/null"}).code == 0);
  CHECK(std::filesystem::is_character_file("/dev/null"));
  const Result full = dgc.run({"report", "run", "-o", "/dev/full"});
  CHECK(full.code == 2);
  CHECK(full.err == "error: cannot write /dev/full: No space left on device\n");
}

}  // namespace dgc
