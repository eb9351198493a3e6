#include "tests/ptx/interpreter/runner.h"

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "paths.h"
#include "tests/ptx/interpreter/error.h"
#include "tests/ptx/interpreter/launch.h"
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

// Appends the name of each entry that is launched to a file, to which other tests may append at the same time.
class LaunchedEntries {
 public:
  explicit LaunchedEntries(std::string file) : file_(std::move(file)) {}

  void note(const std::string& entry) {
    if (file_.empty()) return;
    const std::scoped_lock lock(mutex_);
    if (names_.insert(entry).second) std::ofstream(file_, std::ios::app) << entry + "\n";
  }

 private:
  std::string file_;
  std::set<std::string> names_;
  std::mutex mutex_;
};

class PtxRunner final : public emulation::KernelRunner {
 public:
  PtxRunner(const std::string& folder, RaceCheck races) : library_(folder), races_(races) {}

  std::string name() const override { return "cuda-ptx"; }

  void run(const emulation::KernelLaunch& launch) const override {
    const Kernel& kernel = library_.kernel(kernel_of_type(launch.kernel));
    launched_.note(kernel.program.name);
    ptx::launch(kernel,
                {.grid = launch.how.grid,
                 .block = launch.how.block,
                 .seed = launch.how.seed,
                 .cooperative = launch.cooperative,
                 .races = races_},
                launch.args, launch.args_bytes);
  }

 private:
  mutable Library library_;  // parses what it is asked for
  mutable LaunchedEntries launched_{variable("DGC_PTX_LAUNCHED", "")};
  RaceCheck races_;
};

}  // namespace

std::shared_ptr<const emulation::KernelRunner> runner() {
  static const std::shared_ptr<const emulation::KernelRunner> one =
      []() -> std::shared_ptr<const emulation::KernelRunner> {
    const std::string folder = variable("DGC_PTX_FOLDER", DGC_PTX_FOLDER);
    if (folder.empty()) return nullptr;
    return std::make_shared<PtxRunner>(folder, race_check_of(variable("DGC_PTX_RACES", "")));
  }();
  return one;
}

}  // namespace dgc::ptx
