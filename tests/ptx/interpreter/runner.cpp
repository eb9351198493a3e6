#include "tests/ptx/interpreter/runner.h"

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>

#include "paths.h"
#include "tests/ptx/interpreter/error.h"
#include "tests/ptx/interpreter/launch.h"
#include "tests/ptx/interpreter/launched.h"
#include "tests/ptx/interpreter/library.h"
#include "tests/ptx/interpreter/names.h"

namespace dgc::ptx {
namespace {

std::string variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

RaceCheck race_check_of(const std::string& name) {
  if (name.empty()) return RaceCheck::none;
  if (name == "gpu") return RaceCheck::as_on_gpus;
  if (name == "letter") return RaceCheck::by_the_letter;
  throw_ptx_error("DGC_PTX_RACES is '{}': it must be gpu or letter", name);
}

// Appends a line to a file, to which other tests may append at the same time.
class CountsFile {
 public:
  explicit CountsFile(std::string file) : file_(std::move(file)) {}

  void operator()(const CountedLaunch& launch) {
    const std::scoped_lock lock(mutex_);
    std::ofstream(file_, std::ios::app) << to_json(launch) + "\n";
  }

 private:
  std::string file_;
  std::mutex mutex_;
};

class PtxRunner final : public emulation::KernelRunner {
 public:
  PtxRunner(const std::string& folder, RaceCheck races, TellCounts tell)
      : library_(folder), races_(races), tell_(std::move(tell)) {}

  std::string name() const override { return "cuda-ptx"; }

  void run(const emulation::KernelLaunch& launch) const override {
    const Kernel& kernel = library_.kernel(kernel_of_type(launch.kernel));
    launched_.note(kernel.program.name);
    CountedLaunch counted{kernel_of_type(launch.kernel), launch.how.grid, launch.how.block, {}};
    ptx::launch(kernel,
                {.grid = launch.how.grid,
                 .block = launch.how.block,
                 .seed = launch.how.seed,
                 .cooperative = launch.cooperative,
                 .races = races_,
                 .counts = tell_ ? &counted.phases : nullptr},
                launch.args, launch.args_bytes);
    if (tell_) tell_(counted);
  }

 private:
  mutable Library library_;  // parses what it is asked for
  mutable LaunchedEntries launched_;
  RaceCheck races_;
  TellCounts tell_;
};

std::string ptx_folder() { return variable("DGC_PTX_FOLDER", DGC_PTX_FOLDER); }

RaceCheck race_check() { return race_check_of(variable("DGC_PTX_RACES", "")); }

TellCounts counts_file() {
  const std::string file = variable("DGC_PTX_COUNTS", "");
  if (file.empty()) return nullptr;
  return [counts = std::make_shared<CountsFile>(file)](const CountedLaunch& launch) { (*counts)(launch); };
}

}  // namespace

std::shared_ptr<const emulation::KernelRunner> runner() {
  static const std::shared_ptr<const emulation::KernelRunner> one =
      []() -> std::shared_ptr<const emulation::KernelRunner> {
    if (ptx_folder().empty()) return nullptr;
    return std::make_shared<PtxRunner>(ptx_folder(), race_check(), counts_file());
  }();
  return one;
}

std::shared_ptr<const emulation::KernelRunner> counting_runner(TellCounts tell) {
  if (ptx_folder().empty()) return nullptr;
  return std::make_shared<PtxRunner>(ptx_folder(), race_check(), std::move(tell));
}

}  // namespace dgc::ptx
