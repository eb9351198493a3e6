#include "run/checkpoint.h"

#include <dlfcn.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <stdio.h>
#include <unistd.h>

#include <catch.hpp>
#include <cerrno>
#include <functional>
#include <mutex>
#include <utility>

#include "run/file_io.h"
#include "run/log.h"
#include "tensor/errors.h"
#include "tests/support/run_files.h"

namespace {

bool file_system_exchanges_names = true;
int renames_until_failure = -1;                    // below 0: none fails
std::vector<std::string>* synced_paths = nullptr;  // as they were called then, and "in place" for a change of names

}  // namespace

// In place of the C library's.
extern "C" int fsync(int file) {
  static const auto sync = reinterpret_cast<decltype(&fsync)>(dlsym(RTLD_NEXT, "fsync"));
  std::error_code unknown;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file), unknown);
  if (synced_paths != nullptr) synced_paths->push_back(path.filename().string());
  return sync(file);
}
extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  static const auto exchange = reinterpret_cast<decltype(&renameat2)>(dlsym(RTLD_NEXT, "renameat2"));
  errno = EINVAL;
  return file_system_exchanges_names ? exchange(from_folder, from, to_folder, to, flags) : -1;
}
extern "C" int rename(const char* from, const char* to) noexcept {
  static const auto move = reinterpret_cast<decltype(&rename)>(dlsym(RTLD_NEXT, "rename"));
  errno = EIO;
  if (renames_until_failure-- == 0) return -1;
  const int result = move(from, to);
  if (synced_paths != nullptr && std::filesystem::is_directory(to)) synced_paths->emplace_back("in place");
  return result;
}

namespace dgc {
namespace {

namespace fs = std::filesystem;
using test::TempRun;

std::vector<float> numbers(int64_t step) {
  std::vector<float> values(21);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(step) + 0.5f * static_cast<float>(i);
  return values;
}

Manifest save(CheckpointStore store, int64_t step, int64_t keep = 2, const Row& more = {}) {
  const auto device = make_cpu_device();
  std::vector<float> values = numbers(step);
  store.begin(step);
  Manifest manifest{.step = step, .epoch = step / 2, .values = {}, .files = {}};
  manifest.values.set("workers", int64_t{1}).set("plateau_best", 0.1);
  for (const auto& [key, value] : more.fields()) manifest.values.set(key, value);
  manifest.files.push_back(
      store.write(step, "weights.safetensors", {{.name = "w", .view = {values.data(), {3, 7}}}}, *device));
  manifest.files.push_back(store.write(
      step, "worker-0000.safetensors",
      {{.name = "v", .view = {values.data(), {5}}}, {.name = "count", .view = {}, .number = step}}, *device));
  store.commit(manifest, keep);
  return manifest;
}

Manifest save(const TempRun& run, int64_t step, int64_t keep = 2, const Row& more = {}) {
  return save(CheckpointStore(run.path()), step, keep, more);
}

fs::path folder(const TempRun& run, int64_t step) {
  return run.path() / "checkpoints" / fmt::format("step-{:09}", step);
}

std::vector<int64_t> steps(const TempRun& run) {
  std::vector<int64_t> found;
  for (const fs::path& path : CheckpointStore(run.path()).list()) {
    found.push_back(std::stoll(path.filename().string().substr(5)));
  }
  return found;
}

void overwrite(const fs::path& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

// True when the checkpoint is refused with a message that names the file.
bool refused(const fs::path& checkpoint, const fs::path& file) {
  try {
    const Checkpoint opened(checkpoint);
  } catch (const UserError& error) {
    return std::string(error.what()).find(file.filename().string()) != std::string::npos;
  }
  return false;
}

std::vector<fs::path> files_of(const fs::path& checkpoint) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(checkpoint)) files.push_back(entry.path());
  return files;
}

// Does something at the first message.
class AtMessage : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit AtMessage(std::function<void()> action) : action_(std::move(action)) {}

 private:
  void sink_it_(const spdlog::details::log_msg&) override {
    if (const auto action = std::exchange(action_, nullptr)) action();
  }
  void flush_() override {}

  std::function<void()> action_;
};

// Calls `read`, and, when it passes over a checkpoint, meanwhile `action`.
template <typename Read>
auto read_beside(const std::function<void()>& action, const Read& read) {
  const auto sink = std::make_shared<AtMessage>(action);
  auto& sinks = spdlog::default_logger()->sinks();
  sinks.push_back(sink);
  auto found = read();
  std::erase(sinks, sink);
  return found;
}

}  // namespace

TEST_CASE("a checkpoint comes back as it was saved") {
  const TempRun run;
  CHECK_FALSE(newest_checkpoint(run.path()));
  const Manifest saved = save(run, 7);
  const auto found = newest_checkpoint(run.path());
  REQUIRE(found);
  CHECK(found->path() == folder(run, 7));
  CHECK(found->manifest() == saved);

  std::vector<float> w(21);
  found->open("weights.safetensors").load("w", {w.data(), {3, 7}}, *make_cpu_device());
  CHECK(w == numbers(7));
  CHECK_THROWS_WITH(found->open("worker-0001.safetensors"), Catch::Contains("worker-0001.safetensors"));
}

TEST_CASE("a checkpoint is on the disk before it has its name, and its name before older ones go") {
  const TempRun run;
  std::vector<std::string> done;
  synced_paths = &done;
  save(run, 7);
  synced_paths = nullptr;
  // Each of the four files has a temporary name until it is whole.
  REQUIRE(done.size() == 8);
  for (size_t i = 0; i < 4; ++i) CHECK_THAT(done[i], Catch::StartsWith(".new-"));
  CHECK(std::vector<std::string>(done.begin() + 4, done.end()) ==
        std::vector<std::string>{".saving-7", "in place", "checkpoints", run.path().filename().string()});
}

TEST_CASE("where a file system exchanges no names, a checkpoint that takes another's place loses neither") {
  const TempRun run;
  file_system_exchanges_names = false;
  const Manifest old = save(run, 7);
  const Row more = Row().set("sound", true);
  // The files' own four renames come first, and then the old one's to the side, and the new one's into its place.
  renames_until_failure = 5;
  CHECK_THROWS_WITH(save(run, 7, 2, more), Catch::Contains("cannot rename"));
  renames_until_failure = -1;
  CHECK(newest_checkpoint(run.path())->manifest() == old);
  const Manifest saved = save(run, 7, 2, more);
  file_system_exchanges_names = true;
  CHECK(newest_checkpoint(run.path())->manifest() == saved);
  CHECK(files_of(run.path() / "checkpoints").size() == 1);
}

TEST_CASE("checkpoints that cannot be listed are not taken for none") {
  const TempRun run;
  run.write("checkpoints", "a file where the folder should be");
  const auto told = Catch::Contains("checkpoints: cannot list the folder: Not a directory");
  CHECK_THROWS_WITH(newest_checkpoint(run.path()), told);
  CHECK_THROWS_WITH(CheckpointStore(run.path()).newest_sound(), told);
}

TEST_CASE("every flip of a byte of a checkpoint is found and the file named") {
  const TempRun run;
  save(run, 7);
  int tried = 0, missed = 0;
  for (const fs::path& file : files_of(folder(run, 7))) {
    const std::string good = run.read(fs::relative(file, run.path()).string());
    for (size_t at = 0; at < good.size(); ++at) {
      for (const int mask : {0x01, 0x80, 1 + static_cast<int>(at * 37 % 255)}) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ mask);
        overwrite(file, bad);
        ++tried;
        if (!refused(folder(run, 7), file)) ++missed;
      }
    }
    overwrite(file, good);
  }
  CHECK(tried > 1000);
  CHECK(missed == 0);
  CHECK_NOTHROW(Checkpoint(folder(run, 7)));
}

TEST_CASE("a file of a checkpoint that is too short, too long, missing or no file is found and named") {
  const TempRun run;
  save(run, 7);
  for (const fs::path& file : files_of(folder(run, 7))) {
    CAPTURE(file);
    const std::string good = run.read(fs::relative(file, run.path()).string());
    int missed = 0;
    for (size_t length = 0; length < good.size(); ++length) {
      overwrite(file, good.substr(0, length));
      if (!refused(folder(run, 7), file)) ++missed;
    }
    CHECK(missed == 0);
    for (const size_t more : {1, 100}) {
      overwrite(file, good + std::string(more, '\0'));
      CHECK(refused(folder(run, 7), file));
    }
    fs::remove(file);
    CHECK(refused(folder(run, 7), file));
    fs::create_directory(file);
    CHECK(refused(folder(run, 7), file));
    fs::remove(file);
    overwrite(file, good);
  }
  CHECK_NOTHROW(Checkpoint(folder(run, 7)));
}

TEST_CASE("files of a checkpoint that are larger than all memory are named, and not read") {
  const TempRun run;
  save(run, 7);
  const fs::path file = folder(run, 7) / GENERATE("weights.safetensors", "manifest.json", "manifest.xxh64");
  fs::resize_file(file, uint64_t{1} << 40);
  CHECK_THROWS_WITH(Checkpoint(folder(run, 7)),
                    Catch::Contains(file.string()) && Catch::Contains("1099511627776 bytes"));
}

TEST_CASE("a rank that reads some of the files meets no damage but theirs") {
  const TempRun run;
  save(run, 7);
  overwrite(folder(run, 7) / "weights.safetensors", "");
  const Checkpoint some = Checkpoint::unverified(folder(run, 7));
  CHECK(some.manifest().step == 7);
  CHECK_THROWS_WITH(some.open("weights.safetensors"), Catch::Contains("weights.safetensors is damaged"));
  CHECK_THROWS_AS(Checkpoint(folder(run, 7)), UserError);
  overwrite(folder(run, 7) / "manifest.json", "{}");
  CHECK_THROWS_WITH(Checkpoint::unverified(folder(run, 7)), Catch::Contains("manifest.json is damaged"));
}

TEST_CASE("a damaged newest checkpoint is passed over, said in the log, for the one before it") {
  const TempRun run;
  save(run, 2);
  save(run, 4);
  overwrite(folder(run, 4) / "weights.safetensors", "");
  {
    const RunLog log(run.path());
    const auto found = newest_checkpoint(run.path());
    REQUIRE(found);
    CHECK(found->manifest().step == 2);
  }
  CHECK(run.read("log.txt").find("step-000000004/weights.safetensors is damaged") != std::string::npos);

  overwrite(folder(run, 2) / "manifest.json", "{}");
  CHECK_THROWS_AS(newest_checkpoint(run.path()), UserError);
  CHECK_THROWS_WITH(newest_checkpoint(run.path()), Catch::Contains("none of the 2 checkpoints"));
}

TEST_CASE("who needs the model alone meets no damage but that of the weights") {
  const TempRun run;
  const Row best = Row().set("best_step", int64_t{4}).set("best_kept", int64_t{4});
  for (const int64_t step : {2, 4}) save(run, step, 2, best);
  overwrite(folder(run, 4) / "worker-0000.safetensors", "");
  CHECK(newest_checkpoint(run.path())->manifest().step == 2);
  CHECK(newest_model(run.path()).manifest().step == 4);
  CHECK(best_model(run.path()).manifest().step == 4);
  overwrite(folder(run, 4) / "weights.safetensors", "");
  CHECK(newest_model(run.path()).manifest().step == 2);
  CHECK_THROWS_WITH(best_model(run.path()), Catch::Contains("weights.safetensors is damaged"));
}

TEST_CASE("a newest checkpoint that may be sound is not passed over, as the next save would remove it") {
  const TempRun run;
  save(run, 2);
  save(run, 4);
  const fs::path newest = folder(run, 4);
  SECTION("the system does not let it be read") {
    fs::remove(newest / "weights.safetensors");
    fs::create_symlink("weights.safetensors", newest / "weights.safetensors");
    CHECK_THROWS_WITH(newest_checkpoint(run.path()), Catch::StartsWith("cannot read " + newest.string()) &&
                                                         Catch::EndsWith("to go back to an older checkpoint"));
  }
  SECTION("it is on a disk that is not mounted") {
    fs::remove_all(newest);
    fs::create_directory_symlink("/nowhere/disk", newest);
    CHECK_THROWS_WITH(newest_checkpoint(run.path()),
                      Catch::StartsWith(newest.string() + " is a link to /nowhere/disk"));
  }
  SECTION("another version of dgc has saved it") {
    std::string manifest = run.read("checkpoints/step-000000004/manifest.json");
    const std::string version = "\"version\": 1";
    REQUIRE(manifest.find(version) != std::string::npos);
    manifest.replace(manifest.find(version), version.size(), "\"version\": 2");
    overwrite(newest / "manifest.json", manifest);
    overwrite(newest / "manifest.xxh64", xxh64_hex(manifest));
    CHECK_THROWS_WITH(newest_checkpoint(run.path()),
                      Catch::Contains("checkpoint format 2") && Catch::Contains("remove " + newest.string()));
  }
  fs::remove_all(newest);
  CHECK(newest_checkpoint(run.path())->manifest().step == 2);
}

TEST_CASE("a save that was killed between two renames has lost nothing") {
  const TempRun run;
  save(run, 2);
  const fs::path checkpoints = run.path() / "checkpoints", replaced = checkpoints / ".saving-2-replaced";
  fs::rename(folder(run, 2), replaced);
  fs::create_directory(checkpoints / ".saving-2");
  CheckpointStore(run.path()).restore_replaced();
  CHECK(newest_checkpoint(run.path())->manifest().step == 2);
  fs::create_directory(replaced);  // the second rename had been done
  fs::create_directory(checkpoints / ".saving-x-replaced");
  CheckpointStore(run.path()).restore_replaced();
  CHECK(steps(run) == std::vector<int64_t>{2});
  CHECK(fs::exists(replaced));
  save(run, 4);
  CHECK_FALSE(fs::exists(replaced));
}

TEST_CASE("what a training removes while it is being read gives way to what it has saved") {
  const TempRun run;
  const auto best = [](int64_t step) { return Row().set("best_step", step).set("best_kept", step); };
  for (const int64_t step : {1, 2, 3}) save(run, step, 3, best(1));
  overwrite(folder(run, 3) / "weights.safetensors", "");
  SECTION("the newest") {
    const auto found = read_beside([&] { save(run, 4, 1, best(4)); }, [&] { return newest_checkpoint(run.path()); });
    REQUIRE(found);
    CHECK(found->manifest().step == 4);
  }
  SECTION("the best") {
    const Checkpoint found = read_beside([&] { save(run, 4, 3, best(4)); }, [&] { return best_model(run.path()); });
    CHECK(found.manifest().step == 4);
  }
}

TEST_CASE("an empty folder is no checkpoint") {
  const TempRun run;
  save(run, 2);
  fs::create_directories(folder(run, 9));
  REQUIRE(newest_checkpoint(run.path()));
  CHECK(newest_checkpoint(run.path())->manifest().step == 2);
}

TEST_CASE("what a killed save left behind does not matter") {
  const TempRun run;
  const std::string saving = GENERATE(".saving-2", ".saving-1", ".saving");
  fs::create_directories(run.path() / "checkpoints" / saving / "deep");
  run.write("checkpoints/" + saving + "/weights.safetensors", "half");
  CHECK_FALSE(newest_checkpoint(run.path()));
  save(run, 2);
  CHECK(files_of(folder(run, 2)).size() == 4);
  CHECK_FALSE(fs::exists(run.path() / "checkpoints" / saving));
}

TEST_CASE("only what has a checkpoint's own name is one, and what people keep beside it stays") {
  const TempRun run;
  const std::vector<std::string> others = {
      "step-notes.txt", "step-best", "step-000000001-published",  "step-",
      "step-+00000001", "step-1",    "step-99999999999999999999", "step-0000000000001"};
  for (const std::string& name : others) fs::create_directories(run.path() / "checkpoints" / name);
  CHECK_FALSE(newest_checkpoint(run.path()));
  for (const int64_t step : {1, 2, 999'999'999, 1'000'000'000}) save(run, step, 2);
  CHECK(steps(run) == std::vector<int64_t>{1'000'000'000, 999'999'999});
  CHECK(newest_checkpoint(run.path())->manifest().step == 1'000'000'000);
  for (const std::string& name : others) CHECK(fs::exists(run.path() / "checkpoints" / name));
}

TEST_CASE("a store removes all that it has made, and nothing else") {
  const TempRun run;
  const fs::path root = run.path() / "checkpoints";
  CHECK_NOTHROW(CheckpointStore(run.path()).remove_all());
  for (const int64_t step : {1, 2}) save(run, step);
  fs::create_directories(root / ".saving-3" / "deep");
  fs::create_directories(root / ".saving-2-replaced");
  SECTION("and its folder when that is empty") {
    CheckpointStore(run.path()).remove_all();
    CHECK_FALSE(fs::exists(root));
  }
  SECTION("which stays where people keep something in it") {
    for (const char* name : {"best_so_far", "step-000000002.bak"}) fs::copy(folder(run, 2), root / name);
    run.write("checkpoints/notes.txt", "mine");
    CheckpointStore(run.path()).remove_all();
    CHECK(files_of(root).size() == 3);
    CHECK(files_of(root / "best_so_far").size() == 4);
    CHECK(files_of(root / "step-000000002.bak").size() == 4);
    CHECK(run.read("checkpoints/notes.txt") == "mine");
  }
  SECTION("and a link to the folder stays") {
    fs::rename(root, run.path() / "elsewhere");
    fs::create_directory_symlink(run.path() / "elsewhere", root);
    CheckpointStore(run.path()).remove_all();
    CHECK(fs::is_symlink(root));
    CHECK(fs::is_empty(root));
  }
  SECTION("but for one that leads nowhere") {
    fs::remove_all(root);
    fs::create_directory_symlink(run.path() / "elsewhere", root);
    CheckpointStore(run.path()).remove_all();
    CHECK_FALSE(fs::is_symlink(root));
  }
}

TEST_CASE("no checkpoint is made of files that are not there") {
  const TempRun run;
  save(run, 1, 1);
  CheckpointStore store(run.path());
  std::vector<float> values = numbers(2);
  store.begin(2);
  Manifest manifest{.step = 2, .epoch = 1, .values = {}, .files = {}};
  manifest.files.push_back(
      store.write(2, "weights.safetensors", {{.name = "w", .view = {values.data(), {3, 7}}}}, *make_cpu_device()));
  ManifestFile& file = manifest.files[0];
  if (GENERATE(true, false)) {
    file.bytes += 1;
  } else {
    file.name = "worker-0007.safetensors";
  }
  CHECK_THROWS_WITH(store.commit(manifest, 1), Catch::Contains("is not there as a rank has written it"));
  CHECK(steps(run) == std::vector<int64_t>{1});
}

TEST_CASE("the newest `keep` checkpoints stay") {
  const TempRun run;
  for (const int64_t step : {1, 2, 3, 4}) save(run, step, 3);
  CHECK(steps(run) == std::vector<int64_t>{4, 3, 2});
  save(run, 5, 1);
  CHECK(steps(run) == std::vector<int64_t>{5});
}

TEST_CASE("the best checkpoint that there is stays, where a better one could not be saved") {
  const TempRun run;
  save(run, 1, 1, Row().set("best_step", int64_t{1}).set("best_kept", int64_t{1}));
  const Row unsaved = Row().set("best_step", int64_t{2}).set("best_kept", int64_t{1});
  for (const int64_t step : {3, 4}) save(run, step, 1, unsaved);
  CHECK(steps(run) == std::vector<int64_t>{4, 1});
  CHECK(best_model(run.path()).manifest().step == 1);
}

TEST_CASE("a damaged checkpoint that a resumed run has passed over does not push out good ones") {
  const TempRun run;
  const int64_t keep = GENERATE(1, 2);
  for (const int64_t step : {4, 6, 8}) save(run, step, 3);
  for (const int64_t step : {6, 8}) overwrite(folder(run, step) / "weights.safetensors", "");
  const int64_t next = GENERATE(5, 6, 7, 9);
  CheckpointStore store(run.path());
  store.pass_over_newer(4);
  save(store, next, keep);
  CHECK(steps(run) == (keep == 1 ? std::vector<int64_t>{next} : std::vector<int64_t>{next, 4}));
  CHECK(newest_checkpoint(run.path())->manifest().step == next);
}

TEST_CASE("a checkpoint that cannot be written is the user's error") {
  const TempRun run;
  run.write("checkpoints", "a file where the folder should be");
  CHECK_THROWS_AS(save(run, 1), UserError);
}

TEST_CASE("checkpoints of a run that diverges never remove the last one from before") {
  const TempRun run;
  const Row sound = Row().set("sound", true), lost = Row().set("sound", false);
  CHECK(CheckpointStore(run.path()).newest_sound() == std::nullopt);
  for (const int64_t step : {1, 2, 3}) save(run, step, 2, sound);
  for (const int64_t step : {4, 5, 6, 7}) save(run, step, 2, lost);
  CHECK(steps(run) == std::vector<int64_t>{7, 6, 3});
  CHECK(CheckpointStore(run.path()).newest_sound() == folder(run, 3));
  save(run, 8, 1, lost);
  CHECK(steps(run) == std::vector<int64_t>{8, 3});
  save(run, 9, 2, sound);  // it has recovered
  CHECK(steps(run) == std::vector<int64_t>{9, 8});
  overwrite(folder(run, 9) / "manifest.json", "{}");
  save(run, 10, 3, lost);  // what is damaged is not the one to keep
  CHECK(CheckpointStore(run.path()).newest_sound() == std::nullopt);
}

}  // namespace dgc
