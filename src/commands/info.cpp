#include <fmt/core.h>

#include <thread>

#include "commands/commands.h"
#include "kernels/backend.h"

namespace dgc {

void add_info_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "Say what this program is and what this machine has");
  command->footer("Example:\n  dgc info");
  command->callback([] {
    const auto backend = make_backend("auto", 0);
    fmt::print("dgc            {} ({})\n", DGC_VERSION, DGC_GIT_VERSION);
    fmt::print("compiler       {}\n", __VERSION__);
    fmt::print("device         {} (\"device\": \"auto\" uses this one)\n", backend->device()->name());
    fmt::print("cores          {}\n", std::thread::hardware_concurrency());
    fmt::print("communicators  single, threads\n");
    fmt::print("precisions     fp32\n");
  });
}

}  // namespace dgc
