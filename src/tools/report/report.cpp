#include "tools/report/report.h"

#include <algorithm>

#include "run/file_io.h"
#include "tensor/printable.h"
#include "tools/report/report_data.h"
#include "tools/report/report_page.h"

namespace dgc {
namespace {

// The width in columns of a terminal, not in bytes: a continuation byte of UTF-8 takes no column.
size_t text_width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string padding(const std::string& text, size_t width) { return std::string(width - text_width(text), ' '); }

// Names and texts of others may be anything.
TableRow printable_row(const TableRow& row) {
  TableRow shown{printable(row.what), {}};
  for (const std::string& cell : row.cells) shown.cells.push_back(printable(cell));
  return shown;
}

// The first row is the table's head. What stands first in a row is aligned to the left, and cells to the right.
std::string text_table(const std::vector<TableRow>& any) {
  std::vector<TableRow> rows;
  for (const TableRow& row : any) rows.push_back(printable_row(row));
  size_t what_width = 0;
  std::vector<size_t> widths(rows.front().cells.size(), 0);
  for (const TableRow& row : rows) {
    what_width = std::max(what_width, text_width(row.what));
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], text_width(row.cells[i]));
  }
  std::string out;
  for (const TableRow& row : rows) {
    out += row.what + padding(row.what, what_width);
    for (size_t i = 0; i < widths.size(); ++i) out += "  " + padding(row.cells[i], widths[i]) + row.cells[i];
    out += "\n";
  }
  return out;
}

}  // namespace

void write_report(const std::vector<RunGroup>& groups, const std::filesystem::path& out) {
  write_file(out, report_page(groups));
}

std::string final_table(const std::vector<RunGroup>& groups) {
  auto table = results_table(groups);
  TableRow names{"", {}};
  for (const RunGroup& group : groups) names.cells.push_back(group.full_name());
  table.insert(table.begin(), names);
  std::string out = text_table(table);
  for (const std::string& note : results_notes(groups)) out += note + "\n";
  return out;
}

std::string summary_text(const SummaryTable& table) {
  std::vector<TableRow> rows = {{"", table.columns}};
  rows.insert(rows.end(), table.rows.begin(), table.rows.end());
  std::string out = text_table(rows);
  for (const std::string& note : table.notes) out += printable(note) + "\n";
  return out;
}

void write_summary_report(const std::string& name, const SummaryTable& table, const std::vector<RunGroup>& groups,
                          const std::filesystem::path& out) {
  write_file(out, summary_page(name, table, groups));
}

}  // namespace dgc
