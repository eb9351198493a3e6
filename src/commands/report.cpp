#include "tools/report.h"

#include <fmt/core.h>

#include <memory>

#include "commands/commands.h"
#include "tensor/printable.h"

namespace dgc {

void add_report_command(CLI::App& app) {
  struct Options {
    std::vector<std::filesystem::path> runs;
    std::filesystem::path out = "report.html";
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("report", "Compare runs: a table here, curves in one HTML file");
  command->add_option("RUN", options->runs, "run directories, finished or not")->required();
  command->add_option("-o,--output", options->out, "the HTML file")->capture_default_str();
  command->footer("Example:\n  dgc report runs/quickstart runs/quickstart_dense -o report.html");
  command->callback([options] {
    write_report(options->runs, options->out);
    fmt::print("{}\nreport: {}\n", final_table(options->runs), printable(options->out.string()));
  });
}

}  // namespace dgc
