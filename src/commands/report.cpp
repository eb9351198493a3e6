#include "tools/report.h"

#include <fmt/core.h>

#include <memory>

#include "commands/commands.h"
#include "run/file_io.h"
#include "tensor/printable.h"
#include "tools/report_csv.h"

namespace dgc {
namespace {

void write_csv(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& file) {
  const std::string csv = rows_csv(runs);
  if (file == "-") return fmt::print("{}", csv);
  write_file(file, csv);
}

}  // namespace

void add_report_command(CLI::App& app) {
  struct Options {
    std::vector<std::filesystem::path> runs;
    std::filesystem::path out = "report.html", csv;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("report", "Compare runs: a table here, curves in one HTML file");
  command->add_option("RUN", options->runs, "run directories, finished or not")->required();
  CLI::Option* out = command->add_option("-o,--output", options->out, "the HTML file")->capture_default_str();
  command
      ->add_option("--csv", options->csv,
                   "write the rows of all runs as one CSV table into this file instead, - for standard output")
      ->excludes(out);
  command->footer(
      "Examples:\n  dgc report runs/quickstart runs/quickstart_dense -o report.html\n"
      "  dgc report runs/quickstart --csv - | head\n\n"
      "The page is one file and needs no network.");
  command->callback([options] {
    if (!options->csv.empty()) return write_csv(options->runs, options->csv);
    write_report(options->runs, options->out);
    fmt::print("{}\nreport: {}\n", final_table(options->runs), printable(options->out.string()));
  });
}

}  // namespace dgc
