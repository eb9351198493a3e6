#include "tests/ptx/sass/runner.h"

#include <cstdlib>
#include <string>

#include "tests/ptx/interpreter/launch.h"
#include "tests/ptx/interpreter/launched.h"
#include "tests/ptx/interpreter/names.h"

namespace dgc::ptx::sass {
namespace {

std::string sass_folder() {
  const char* const folder = std::getenv("DGC_SASS_FOLDER");
  return folder != nullptr ? folder : DGC_SASS_FILES;
}

class SassRunner final : public emulation::KernelRunner {
 public:
  std::string name() const override { return "cuda-sass"; }

  void run(const emulation::KernelLaunch& launch) const override {
    const Kernel& kernel = library().kernel(kernel_of_type(launch.kernel));
    launched_.note(kernel.program.name);
    ptx::launch(kernel,
                {.grid = launch.how.grid,
                 .block = launch.how.block,
                 .seed = launch.how.seed,
                 .cooperative = launch.cooperative},
                launch.args, launch.args_bytes);
  }

 private:
  mutable LaunchedEntries launched_;
};

}  // namespace

Library& library() {
  static Library one(sass_folder());
  return one;
}

std::shared_ptr<const emulation::KernelRunner> runner() {
  static const auto one = std::make_shared<SassRunner>();
  return one;
}

}  // namespace dgc::ptx::sass
