// Paths that the system refuses: somebody else's, too long ones, and those at which there is nothing.
#include <fmt/format.h>
#include <sys/stat.h>

#include <catch.hpp>

#include "tests/commands/trained.h"

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

Words with_data(const std::string& config, const std::string& type, const std::string& path) {
  return {"train", config, "--set", fmt::format(R"(data={{"type": "{}", "path": "{}"}})", type, path)};
}

// Each command with `path` where it takes one that must be there, or whose folder must be.
std::vector<Words> commands_that_find(const std::string& path) {
  std::vector<Words> all = {{"train", path},
                            {"train", "tiny.json", "--set", "model.init_from=" + path},
                            {"train", "tiny.json", "--set", "conv_plans=" + path},
                            with_data("tiny.json", "image_folder", path),
                            {"train", "lm.json", "--set", "data.train=" + path},
                            {"train", "lm.json", "--set", "data.valid=" + path},
                            {"train", "lm.json", "--set", "data.vocabulary=" + path},
                            {"train", "speech.json", "--set", "data.path=" + path},
                            with_data("speech.json", "an4", path),
                            with_data("speech.json", "librispeech", path),
                            {"eval", path},
                            {"eval", "run", "--logits", path},
                            {"eval", "speech", "--beam", "2", "--lm", path},
                            {"generate", path},
                            {"transcribe", path, "sound.wav"},
                            {"transcribe", "speech", path},
                            {"transcribe", "speech", "sound.wav", "--beam", "2", "--lm", path},
                            {"predict", path, "picture.png"},
                            {"predict", "pictures", path},
                            {"plan", path},
                            {"config", path},
                            {"bench", "train", path},
                            {"bench", "data", path},
                            {"bench", "convolutions", path},
                            {"report", path},
                            {"report", "run", "-o", path},
                            {"report", "run", "--csv", path},
                            {"study", path}};
  for (const char* type : {"cifar10", "mnist"}) {
    all.push_back(with_data("tiny.json", type, path));
    all.back().insert(all.back().end(), {"--set", "model.classes=10"});
  }
  return all;
}

// These make the folder `path`, and those above it.
std::vector<Words> commands_that_make(const std::string& path) {
  return {{"train", "tiny.json", "--out", path},
          {"train", "tiny.json", "--out", path, "--resume"},
          {"train", "tiny.json", "--set", "output=" + path},
          {"study", "study.json", "--out", path}};
}

std::vector<Words> commands_with(const std::string& path) {
  std::vector<Words> all = commands_that_find(path);
  for (Words& command : commands_that_make(path)) all.push_back(std::move(command));
  return all;
}

class TrainedRun : public Program {
 public:
  TrainedRun() {
    write_language_model(*this);
    write("study.json", R"({"config": "tiny.json", "seeds": [1], "runs": {"a": {}}})");
    require_trained(*this, {"tiny.json", "--out", "run", "--set", "training.epochs=1"});
  }
};

// With runs of pictures and of speech as well: pictures, speech.
class TrainedRunsOfAllKinds : public TrainedRun {
 public:
  TrainedRunsOfAllKinds() {
    train_on_pictures(*this, "pictures");
    train_on_speech(*this, speech_, "speech");
  }

 private:
  TinySpeech speech_;
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
  // Whether that user may run dgc, and read what lies in its folder.
  bool there() const { return run({"config", (dgc_.folder() / "tiny.json").string()}).code == 0; }

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
  const TrainedRunsOfAllKinds dgc;
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

TEST_CASE("a path at which there is nothing is the user's error") {
  const TrainedRunsOfAllKinds dgc;
  for (const Words& command : commands_that_find("no/such")) {
    CAPTURE(command);
    check_refused(dgc.run(command), "no/such");
  }
  CHECK_FALSE(fs::exists(dgc.folder() / "no"));
}

TEST_CASE("a folder that is closed to the user is the user's error") {
  const Readable readable;
  const TrainedRunsOfAllKinds dgc;
  const Nobody nobody(dgc);
  if (!nobody.there()) {
    WARN("skipped: another user may not run " DGC_BINARY " here, or not read " << dgc.folder());
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
    WARN("skipped: another user may not run " DGC_BINARY " here, or not read " << dgc.folder());
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
