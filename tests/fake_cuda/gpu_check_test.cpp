// scripts/gpu_check without a GPU: the script itself, its rows, logs, limits and exit codes. It runs in a copy of its
// folders, where the commands that it calls are stand-ins: of the machine's tools, of the tests and of the build, which
// puts the program on the fake GPU into the place of what it would have built.
#include <catch.hpp>
#include <filesystem>

#include "tests/commands/child.h"
#include "tests/support/run_files.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;

namespace {

namespace fs = std::filesystem;

// What the build leaves: dgc, which trains small networks on the fake GPU, and of long runs only says that they ran.
const std::string kDgc = "#!/bin/bash\nreal=" DGC_ON_FAKE_CUDA R"(
out=${!#}
small() {
  local words=()
  for key in training.max_steps=3 workers_per_rank=1 "$@"; do words+=(--set "$key"); done
  exec "$real" "${call[@]}" "${words[@]}"
}
call=("$@")
case "$*" in
  train*/quickstart.json*smoke*)
    small 'model={"type": "resnet", "depth": 8, "width": 4, "classes": 10}' training.batch_per_worker=1 'data={"type":
      "synthetic", "height": 8, "width": 8, "channels": 3, "classes": 10, "train_samples": 16, "test_samples": 4}' ;;
  train*/quickstart_lm.json*smoke*) small model.hidden=6 model.vocabulary=20 data.vocabulary_size=20 data.bptt=50 ;;
  train*/quickstart_speech.json*smoke*)
    small model.hidden=6 model.layers=1 training.batch_per_worker=1 'model.convolutions={"channels": [2],
      "kernel_frames": [3], "kernel_frequencies": [9], "stride_frames": [4], "stride_frequencies": [4]}' ;;
  train*) mkdir -p "$out" && echo '{"hidden_share": 0.5, "weights_xxh64": "1"}' >"$out/metrics.jsonl" ;;
  bench*) echo '{"milliseconds": 1}' ;;
  report*) echo report >"$out" ;;
  *) exec "$real" "$@" ;;
esac
)";

// A program of tests in files of these names, which answers as Catch2 does. All of them pass, but for files of which
// `cases`, which are bash's, say otherwise.
std::string tests_in(const std::string& files, const std::string& cases = "") {
  return fmt::format(R"(#!/bin/bash
case "$*" in
  *--list-tags*) printf '   1  [#%s]\n' {}; exit 7 ;;  # Catch2 2 exits with their number
  {}
  *) echo "arguments: $*"; echo 'All tests passed (3 assertions in 1 test case)' ;;
esac
)",
                     files, cases);
}

// A folder with the script, what it runs, and stand-ins that come first in PATH.
class Machine {
 public:
  Machine() {
    for (const char* name : {"scripts", "bench", "bin", "built"}) fs::create_directory(path(name));
    for (const char* name : {"scripts/gpu_check", "scripts/short_runs.py", "scripts/cores", "bench/program.py",
                             "bench/processes.py", "bench/tiny_data.py", "configs"}) {
      fs::copy(fs::path(DGC_SOURCE_DIR) / name, path(name), fs::copy_options::recursive);
    }
    for (const char* tool : {"ninja", "g++"}) tool_says(tool, "");
    program("bin/mpirun", "#!/bin/bash\nwhile [[ $1 != */dgc ]]; do shift; done\nexec \"$@\"\n");
    tool_says("nvcc", "compute_80\ncompute_90\ncompute_100");
    tool_says("nvidia-smi", "name, driver_version, memory.total [MiB], compute_cap\nFake, 1, 80000 MiB, 9.0");
    program("bin/compute-sanitizer", "#!/bin/bash\necho 'Device not supported'; sleep 0.1; echo 'and more'; exit 1\n");
    program("bin/cmake", R"(#!/bin/bash
case $1 in
  -S) mkdir -p "$4" && echo "settings: $*" ;;
  --build) echo "$*"; if [[ $* == *"--target dgc "* ]]; then cp -p built/dgc "$2"; else cp -p built/* "$2"; fi ;;
esac
)");
    // Takes the time out of it: tests assert nothing about how long something takes.
    program("bin/timeout", "#!/bin/bash\nuntil [[ $1 == [0-9]* ]]; do shift; done\nshift\nexec \"$@\"\n");
    program("built/dgc", kDgc);
    for (const char* folder : {"kernels", "layers", "models", "optim", "train"}) {
      program(std::string("built/test_") + folder, tests_in("good_test other_test"));
    }
  }

  fs::path path(const std::string& name) const { return folder_.path() / name; }
  void program(const std::string& file, const std::string& text) const {
    folder_.write(file, text);
    fs::permissions(path(file), fs::perms::owner_all);
  }
  void tool_says(const std::string& tool, const std::string& text) const {
    program("bin/" + tool, "#!/bin/bash\ncat <<'END'\n" + text + "\nEND\n");
  }

  Child start(const std::vector<std::string>& arguments) const {
    std::vector<std::string> words = {"GIT_DIR=none", "PATH=" + path("bin").string() + ":" + std::getenv("PATH"),
                                      "scripts/gpu_check"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return {folder_.path(), words, "env"};
  }
  int run(const std::vector<std::string>& arguments) const { return start(arguments).wait(); }

  std::string report() const { return folder_.read("build/gpu_check/report.md"); }
  std::string log(const std::string& step) const { return folder_.read("build/gpu_check/" + step + ".log"); }
  std::string said() const { return folder_.read("stderr.txt"); }

 private:
  TempRun folder_;
};

}  // namespace

TEST_CASE("gpu_check reports the tests of a machine whose GPU does all that it should") {
  const Machine machine;
  const int code = machine.run({"--part", "tests"});
  const std::string report = machine.report();
  CAPTURE(report, machine.said());
  CHECK(code == 0);
  CHECK_THAT(report, Contains("commit unknown\n") && Contains("Fake, 1, 80000 MiB, 9.0"));
  CHECK_THAT(report, Contains("cuda:0"));  // from dgc info
  for (const char* step :
       {"nvidia_smi", "configure", "build", "gpu", "smoke", "build_tests", "test_large", "configs"}) {
    CHECK_THAT(report, Contains(fmt::format("| {} | ok | ", step)));
  }
  for (const char* program : {"test_kernels", "test_layers", "test_models", "test_optim", "test_train"}) {
    CHECK_THAT(report, Contains(fmt::format("| {} | ok (2 files) | ", program)));
    CHECK_THAT(report, Contains(fmt::format("## {}\n", program)));
  }
  CHECK(occurrences(report, "ok      good_test, ") == 5);
  CHECK(occurrences(report, " s: All tests passed (3 assertions in 1 test case)\n") == 10);
  for (const char* kind : {"quickstart.json", "quickstart_lm.json", "quickstart_speech.json"}) {
    CHECK_THAT(report, Contains(fmt::format("ok      {}", kind)));
  }
  CHECK_THAT(report, Contains("ok      the same weights: exchange.overlap and without, fp16"));
  CHECK_THAT(report, Contains("| sanitizers | skipped: compute-sanitizer says \"Device not supported\""));
  CHECK_THAT(report, !Contains("FAILED"));
  CHECK_THAT(machine.log("configure"), Contains("-DCMAKE_CUDA_ARCHITECTURES=90-real "));
  CHECK_THAT(machine.log("build"), Contains("--target dgc -- -k 0\n"));
  CHECK_THAT(machine.log("build_tests"),
             Contains("--target test_kernels test_layers test_models test_optim test_train -- -k 0\n"));
  CHECK_THAT(machine.log("kernels.other_test"), Contains("[#other_test]~[emulation]~[.]\n"));
  CHECK_THAT(machine.log("train.good_test"), Contains("[#good_test]*PyTorch*\n"));
}

TEST_CASE("gpu_check goes on behind a file of tests whose process dies or hangs, and names it") {
  const Machine machine;
  machine.program("built/test_kernels",
                  tests_in("bad_test dying_test good_test hanging_test last_test",
                           "*'[#bad_test]'*) echo 'bad_test.cpp:7: FAILED:'; echo '  CHECK( 1 == 2 )'; exit 42 ;;"
                           "*'[#dying_test]'*) echo 'terminate called'; kill -SEGV $$ ;;"
                           "*'[#hanging_test]'*) echo 'began'; exit 124 ;;"));  // what timeout says of it
  machine.program("built/test_layers", "#!/bin/bash\necho 'libcudart.so: cannot open' >&2; exit 127\n");
  fs::remove(machine.path("built/test_optim"));       // it did not compile
  fs::remove(machine.path("scripts/short_runs.py"));  // the trainings are not this test's
  CHECK(machine.run({"--part", "tests"}) == 1);
  const std::string report = machine.report();
  CAPTURE(report, machine.said());
  CHECK_THAT(report, Contains("| test_kernels | 2 of 5 files passed |"));
  CHECK_THAT(report, Contains("| kernels.bad_test | **FAILED**: exit code 42 |"));
  CHECK_THAT(report, Contains("| kernels.dying_test | **FAILED**: exit code 139 |"));
  CHECK_THAT(report, Contains("| kernels.hanging_test | **FAILED**: not done after 90 s |"));
  CHECK_THAT(report, !Contains("| kernels.good_test") && !Contains("| kernels.last_test"));
  CHECK_THAT(report, Contains("FAILED  dying_test, ") && Contains("ok      last_test, "));
  CHECK_THAT(report, Contains("## kernels.bad_test.log") && Contains("CHECK( 1 == 2 )"));
  CHECK_THAT(report, Contains("## kernels.dying_test.log") && Contains("terminate called"));
  CHECK_THAT(report, Contains("| test_layers | **FAILED**: lists no tests |"));
  CHECK_THAT(report, Contains("## test_layers.log") && Contains("libcudart.so: cannot open"));
  CHECK_THAT(report, Contains("| test_optim | **FAILED**: lists no tests |"));
  CHECK_THAT(report, Contains("| test_models | ok (2 files) |") && Contains("| test_train | ok (2 files) |"));
}

TEST_CASE("gpu_check lets memcheck go on behind a fault, and no other sanitizer") {
  const Machine machine;
  machine.program("bin/compute-sanitizer", "#!/bin/bash\necho \"arguments: $*\"\n");
  fs::remove(machine.path("scripts/short_runs.py"));
  machine.run({"--part", "tests"});
  CAPTURE(machine.report());
  for (const std::string tool : {"memcheck", "racecheck", "initcheck", "synccheck"}) {
    CHECK_THAT(machine.report(), Contains("| sanitizer_" + tool + " | ok (2 files) |"));
    const bool goes_on =
        machine.log("sanitizer_" + tool + ".good_test").find("--destroy-on-device-error kernel") != std::string::npos;
    CHECK(goes_on == (tool == "memcheck"));
  }
}

TEST_CASE("gpu_check names the file in which a sanitizer finds something, and passes over files without a kernel") {
  const Machine machine;
  machine.program("bin/compute-sanitizer", R"(#!/bin/bash
case "$*" in
  *'[#good_test]'*) echo '========= Error: Target application terminated before first instrumented API call'; exit 255 ;;
  *racecheck*'[#other_test]'*) echo '========= RACECHECK SUMMARY: 1 hazard displayed'; exit 9 ;;
  *synccheck*) exit 255 ;;
esac
)");
  CHECK(machine.run({"--part", "tests", "--only", "sanitizer_(mem|race|sync)check"}) == 1);
  const std::string report = machine.report();
  CAPTURE(report, machine.said());
  CHECK_THAT(report, Contains("| sanitizer_memcheck | ok (2 files) |") && !Contains("initcheck"));
  CHECK_THAT(report, Contains("| sanitizer_racecheck | 1 of 2 files passed |"));
  CHECK_THAT(report, Contains("| sanitizer_racecheck.other_test | **FAILED**: exit code 9 |"));
  CHECK_THAT(report, Contains("| sanitizer_synccheck.other_test | **FAILED**: exit code 255 |"));
  CHECK(occurrences(report, "RACECHECK SUMMARY: 1 hazard") > 0);
}

TEST_CASE("gpu_check does only the steps and files of tests that --only names") {
  const Machine machine;
  CHECK(machine.run({"--part", "tests", "--part", "speed", "--only", "^kernels[.]other|bench_dgc_ptb"}) == 1);
  const std::string report = machine.report();
  CAPTURE(report, machine.said());
  CHECK_THAT(report, Contains("| build | ok |") && Contains("| test_kernels | ok (1 files) |"));
  CHECK_THAT(report, Contains("| bench_dgc_ptb_lstm | **FAILED**"));  // bench/torch_dgc_step.py is not there
  for (const char* left_out : {"smoke", "test_layers", "configs", "sanitizer", "bench_dgc_resnet50", "good_test"}) {
    CHECK_THAT(report, !Contains(left_out));
  }
}

TEST_CASE("gpu_check has failed where --only names nothing") {
  const Machine machine;
  CHECK(machine.run({"--part", "tests", "--only", "memchek"}) == 1);
  CHECK_THAT(machine.report(), Contains("| only | **FAILED**: no step or file of tests is called memchek |"));
}

TEST_CASE("gpu_check builds PTX for a GPU that nvcc does not know") {
  const Machine machine;
  machine.tool_says("nvidia-smi", "name, driver_version, memory.total [MiB], compute_cap\nFake, 1, 80000 MiB, 10.3");
  machine.program("built/dgc", "#!/bin/bash\necho 'device  cpu'\n");  // the rest is not this test's
  CHECK(machine.run({"--part", "tests"}) == 1);
  CHECK_THAT(machine.log("configure"), Contains("-DCMAKE_CUDA_ARCHITECTURES=90 "));
  CHECK_THAT(machine.report(), Contains("| architecture | nvcc knows no compute capability \"103\""));
}

TEST_CASE("gpu_check says that a bundle needs a newer glibc before it unpacks it") {
  const Machine machine;
  fs::create_directory(machine.path("bundle"));
  machine.program("bundle/dgc-bundle.tar.xz", "");
  machine.tool_says("getconf", "glibc 2.9");
  CHECK(machine.run({"--part", "tests"}) == 1);
  CHECK_THAT(machine.report(), Contains("| the rest | **FAILED**: bundle/dgc-bundle.tar.xz needs glibc 2.36 or newer, "
                                        "and this machine has glibc 2.9 |"));
  CHECK_THAT(machine.report(), !Contains("| bundle |"));
}

TEST_CASE("gpu_check reports what fails, what takes too long and what is missing, and goes on") {
  const Machine machine;
  machine.program("built/dgc", "#!/bin/bash\n[[ $1 == info ]] && echo 'device  cuda:0' || exit 3\n");
  fs::remove(machine.path("bin/compute-sanitizer"));
  const int code = machine.run({"--part", "tests"});
  const std::string report = machine.report();
  CAPTURE(report);
  CHECK(code == 1);
  CHECK_THAT(report, Contains("| smoke | **FAILED**: exit code 1 |"));
  CHECK_THAT(report, Contains("FAILED  quickstart.json exit code 3"));
  CHECK_THAT(report, Contains("| configs | **FAILED**: exit code 1 |"));
  CHECK_THAT(report, Contains("| sanitizers | **FAILED**: compute-sanitizer is not on this machine |"));
  CHECK_THAT(machine.said(), Contains("report.md: 3 failed"));
}

TEST_CASE("gpu_check leaves a folder alone that holds other files") {
  const Machine machine;
  fs::create_directory(machine.path("mine"));
  machine.program("mine/experiment.log", "dear");
  CHECK(machine.run({"mine"}) == 2);
  CHECK_THAT(machine.said(), Contains("/mine holds other files than those of this script; give another FOLDER"));
  CHECK(text_of(machine.path("mine/experiment.log")) == "dear");
}

TEST_CASE("gpu_check ends where dgc sees no GPU") {
  const Machine machine;
  machine.program("built/dgc", "#!/bin/bash\necho 'device  cpu'\n");
  CHECK(machine.run({"--part", "tests"}) == 1);
  CHECK_THAT(machine.report(), Contains("| the rest | **FAILED**: needs a GPU that dgc sees |"));
  CHECK_THAT(machine.report(), !Contains("smoke"));
}

TEST_CASE("gpu_check that is stopped leaves a report of what it was at") {
  const Machine machine;
  fs::remove(machine.path("bin/timeout"));  // the real one ends what a step has started, too
  machine.program("built/dgc", "#!/bin/bash\n[[ $1 == info ]] && echo 'device  cuda:0' || exec sleep 60\n");
  Child child = machine.start({"--part", "tests"});
  REQUIRE(
      wait_until([&] { return machine.report().find("| smoke | **FAILED**: not finished |") != std::string::npos; }));
  child.send(SIGTERM);
  CHECK(child.wait() == 1);
  CHECK_THAT(machine.report(), Contains("| the rest | **FAILED**: stopped from outside |"));
  CHECK_THAT(machine.report(), Contains("| build | ok |"));
}

TEST_CASE("gpu_check measures speed and accuracy, and says what failed of it") {
  const Machine machine;
  machine.program("bin/python3", "#!/bin/bash\n[[ $* == *resnet* ]] && echo '{\"samples_per_s\": 7}' || exit 5\n");
  CHECK(machine.run({"--part", "speed", "--part", "accuracy"}) == 1);
  const std::string report = machine.report();
  CAPTURE(report);
  CHECK_THAT(report, Contains("| torch | **FAILED**: exit code 5 |"));
  CHECK_THAT(report, Contains("| bench_dgc_resnet50 | ok |") && Contains("| bench_dgc_ptb_lstm | **FAILED**"));
  CHECK_THAT(report, Contains("| bench_train_resnet110 | ok |") && Contains("{\"samples_per_s\": 7}"));
  CHECK_THAT(report, Contains("| accuracy_dgc | ok |") && Contains("| accuracy_dense | ok |"));
  CHECK_THAT(report, Contains("| accuracy | ok |"));
}

TEST_CASE("gpu_check refuses options that it does not have") {
  const Machine machine;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--part", "nonsense"}, {"--part"}, {"--minutes", "0"}, {"--only"}, {"--only", "("}, {"--fast"}}) {
    CHECK(machine.run(words) == 2);
    CHECK_THAT(machine.said(), Catch::StartsWith("scripts/gpu_check: ") && Contains("see --help"));
    CHECK(occurrences(machine.said(), "\n") == 1);
  }
  CHECK(!fs::exists(machine.path("build")));
}
