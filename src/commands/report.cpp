#include "tools/report/report.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>

#include "commands/commands.h"
#include "commands/option_checks.h"
#include "run/file_io.h"
#include "run/metrics.h"
#include "run/run_directory.h"
#include "tensor/errors.h"
#include "tensor/printable.h"
#include "tools/report/follow_report.h"
#include "tools/report/report_csv.h"

namespace dgc {
namespace {

void write_csv(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& file) {
  if (file != "-") {
    FileWriter out(file);
    write_rows_csv(runs, [&](const std::string& record) { out.write(record.data(), record.size()); });
    out.finish();
    return;
  }
  write_rows_csv(runs, [](const std::string& record) {
    for (size_t at = 0, end = 0; (end = record.find('\n', at)) != std::string::npos; at = end + 1) {
      fmt::print("{}\n", printable(std::string_view(record).substr(at, end - at)));
    }
  });
}

// So that `runs/*` may name other files too, and runs that have only begun. One that is named alone is refused, and so
// is what is not there at all, which no pattern of a shell names.
void leave_out_others(std::vector<std::filesystem::path>& runs) {
  for (const auto& run : runs) {
    if (!std::filesystem::exists(run)) throw_user_error("{}: there is no such run directory", run.string());
  }
  const auto is_other = [](const std::filesystem::path& run) {
    require_no_pipes(run);
    return !std::filesystem::exists(run / kConfigFile) || !has_steps(run);
  };
  if (std::ranges::all_of(runs, is_other)) return;
  for (const auto& run : runs) {
    if (is_other(run)) spdlog::warn("{} is left out: it is no run with a finished step", printable(run.string()));
  }
  std::erase_if(runs, is_other);
}

}  // namespace

void add_report_command(CLI::App& app) {
  struct Options {
    std::vector<std::filesystem::path> runs;
    std::filesystem::path out = "report.html", csv;
    bool follow = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("report", "Compare runs: a table here, curves in one HTML file");
  command->add_option("RUN", options->runs, "run directories, finished or not")->required();
  CLI::Option* out =
      command->add_option("-o,--output", options->out, "the HTML file")->check(output_file())->capture_default_str();
  CLI::Option* follow = command->add_flag("--follow", options->follow,
                                          "write the page anew as the runs go on, until they have ended or Ctrl-C");
  command
      ->add_option("--csv", options->csv,
                   "write the rows of all runs as one CSV table into this file instead, - for standard output")
      ->check(output_file_or_dash())
      ->excludes(out, follow);
  command->footer(
      "Examples:\n  dgc report runs/quickstart runs/quickstart_dense -o report.html\n"
      "  dgc report runs/quickstart --follow\n  dgc report runs/quickstart --csv - | head\n\n"
      "The page is one file and needs no network. With --follow it reloads itself; a RUN may begin later, and a "
      "stopped one\ngo on. Ctrl-C ends it with exit code 130, and leaves the page as it is.");
  command->callback([options] {
    if (options->runs.size() > 1 && !options->follow) leave_out_others(options->runs);
    if (!options->csv.empty()) return write_csv(options->runs, options->csv);
    if (options->follow) spdlog::info("following: open {}", printable(options->out.string()));
    const std::vector<RunGroup> groups =
        options->follow ? follow_report(options->runs, options->out) : read_groups(options->runs);
    if (!options->follow) write_report(groups, options->out);
    fmt::print("{}\nreport: {}\n", final_table(groups), printable(options->out.string()));
  });
}

}  // namespace dgc
