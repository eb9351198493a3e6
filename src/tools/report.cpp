#include "tools/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "run/file_io.h"
#include "tensor/errors.h"
#include "tensor/printable.h"
#include "tools/report_data.h"
#include "tools/report_page.h"

namespace dgc {
namespace {

// The width in columns of a terminal, not in bytes: a continuation byte of UTF-8 takes no column.
size_t text_width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string padding(const std::string& text, size_t width) { return std::string(width - text_width(text), ' '); }

}  // namespace

void write_report(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& out) {
  write_file(out, report_page(read_runs(runs)));
}

std::string final_table(const std::vector<std::filesystem::path>& paths) {
  const auto runs = read_runs(paths);
  auto table = results_table(runs);
  TableRow names{"", {}};
  for (const RunData& run : runs) names.cells.push_back(printable(run.full_name()));
  table.insert(table.begin(), names);

  size_t what_width = 0;
  std::vector<size_t> widths(runs.size(), 0);
  for (const TableRow& row : table) {
    what_width = std::max(what_width, text_width(row.what));
    for (size_t i = 0; i < runs.size(); ++i) widths[i] = std::max(widths[i], text_width(row.cells[i]));
  }
  std::string out;
  for (const TableRow& row : table) {
    out += row.what + padding(row.what, what_width);
    for (size_t i = 0; i < runs.size(); ++i) out += "  " + padding(row.cells[i], widths[i]) + row.cells[i];
    out += "\n";
  }
  return out + "* mean over the steps after warm-up, at the run's full sparsity\n";
}

}  // namespace dgc
