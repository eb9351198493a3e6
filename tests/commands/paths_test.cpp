// Paths that the system refuses: somebody else's, and too long ones.
#include <sys/stat.h>

#include <catch.hpp>

#include "tests/commands/program.h"

namespace dgc {
namespace {

using namespace test;
using Catch::Contains;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

// One sentence, exit code 2, and no word of an error of ours.
void check_refused(const Result& result, const std::string& reason) {
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Catch::StartsWith("error: ") && Contains(reason) && !Contains("internal"));
  CHECK(is_one_line(result.err));
}

// Each command with `path` where it takes one.
std::vector<Words> commands_with(const std::string& path) {
  return {{"train", path},
          {"train", "tiny.json", "--out", path},
          {"train", "tiny.json", "--out", path, "--resume"},
          {"train", "tiny.json", "--set", "output=" + path},
          {"train", "tiny.json", "--set", R"(data={"type": "cifar10", "path": ")" + path + "\"}", "--set",
           "model.classes=10"},
          {"train", "tiny.json", "--set", R"(data={"type": "mnist", "path": ")" + path + "\"}", "--set",
           "model.classes=10"},
          {"train", "tiny.json", "--set", R"(data={"type": "image_folder", "path": ")" + path + "\"}"},
          {"train", "lm.json", "--set", "data.train=" + path},
          {"train", "lm.json", "--set", "data.vocabulary=" + path},
          {"eval", path},
          {"eval", "run", "--logits", path},
          {"generate", path},
          {"transcribe", path, "sound.wav"},
          {"predict", path, "picture.png"},
          {"plan", path},
          {"config", path},
          {"bench", "train", path},
          {"report", path},
          {"report", "run", "-o", path}};
}

class TrainedRun : public Program {
 public:
  TrainedRun() {
    write_language_model(*this);
    REQUIRE(run({"train", "tiny.json", "--out", "run", "--set", "training.epochs=1"}).code == 0);
  }
};

// Runs dgc as a user who is not root.
class Nobody {
 public:
  explicit Nobody(const Program& dgc) : dgc_(dgc) {}

  Result run(const Words& arguments) const {
    if (geteuid() != 0) return dgc_.run(arguments);
    Words words = {"--reuid=65534", "--regid=65534", "--clear-groups", DGC_BINARY};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Child child(dgc_.folder(), words, "setpriv");
    const int code = child.wait();
    return {code, child.out(), child.err()};
  }
  bool there() const { return run({"--help"}).code == 0; }

 private:
  const Program& dgc_;
};

// What is written from now on others may read, whatever the shell says.
class Readable {
 public:
  Readable() : before_(umask(022)) {}
  ~Readable() { umask(before_); }

 private:
  mode_t before_;
};

}  // namespace

TEST_CASE("a name or path that is too long is the user's error") {
  const TrainedRun dgc;
  const std::string name = std::string(256, 'n');
  std::string path;
  while (path.size() < 4200) path += std::string(100, 'p') + "/";
  for (const std::string& long_one : {name, name + "/x", path}) {
    for (const Words& command : commands_with(long_one)) {
      CAPTURE(command);
      check_refused(dgc.run(command), long_one.substr(0, 100));
    }
  }
}

TEST_CASE("a folder that is closed to the user is the user's error") {
  const Readable readable;
  const TrainedRun dgc;
  const Nobody nobody(dgc);
  if (!nobody.there()) {
    WARN("skipped: this machine does not let another user run " DGC_BINARY);
    return;
  }
  fs::create_directory(dgc.folder() / "closed");
  fs::copy(dgc.folder() / "run", dgc.folder() / "closed" / "run", fs::copy_options::recursive);
  fs::permissions(dgc.folder() / "closed", fs::perms::none);
  for (const char* path : {"closed/run", "closed/no/such", "closed"}) {
    for (const Words& command : commands_with(path)) {
      CAPTURE(command);
      check_refused(nobody.run(command), "closed");
    }
  }
  fs::permissions(dgc.folder() / "closed", fs::perms::owner_all);
}

TEST_CASE("a run whose checkpoints cannot be listed is not started over") {
  const Readable readable;
  const TrainedRun dgc;
  const Nobody nobody(dgc);
  if (!nobody.there()) {
    WARN("skipped: this machine does not let another user run " DGC_BINARY);
    return;
  }
  const fs::path checkpoints = dgc.folder() / "run" / "checkpoints";
  fs::permissions(dgc.folder() / "run", fs::perms::all);
  for (const auto& entry : fs::directory_iterator(dgc.folder() / "run")) fs::permissions(entry.path(), fs::perms::all);
  fs::permissions(checkpoints, fs::perms::none);
  const std::string before = dgc.read("run/metrics.jsonl");
  check_refused(nobody.run({"train", "tiny.json", "--out", "run", "--set", "training.epochs=1", "--resume"}),
                "run/checkpoints: cannot list the folder: Permission denied");
  CHECK(dgc.read("run/metrics.jsonl") == before);
  fs::permissions(checkpoints, fs::perms::owner_all);
}

}  // namespace dgc
