#pragma once

#include <sys/wait.h>

#include <catch.hpp>
#include <cstdlib>
#include <string>

#include "json/text.h"
#include "paths.h"
#include "tests/support/shell.h"
#include "tests/tools/report/made_runs.h"

// The script of a report's page: what it is given, and what it draws.
namespace dgc::test {

// What the page's script draws.
inline Json page_curves(const std::string& page) {
  return parse_json(between(page, "<script type=\"application/json\" id=\"curves\">", "</script>"), "the page");
}

// The figures of a page that its script draws, at first and after each action; null without Node.js, which is said.
// stored: what the browser has kept of an earlier page.
inline Json drawn_by_script(const std::string& page, const std::string& actions, const std::string& stored = "null") {
  TempRun folder;
  folder.write("report.html", page);
  const std::string drawn = folder.path() / "drawn.json";
  const std::string command =
      command_of({"env", "STORED=" + stored, "timeout", "60", "node",
                  DGC_SOURCE_DIR "/tests/tools/report/page_in_node.js", folder.path() / "report.html"});
  const int status = std::system((command + " " + actions + " > " + quoted(drawn)).c_str());
  constexpr int kOldNode = 77, kNoNode = 127;
  if (WEXITSTATUS(status) == kOldNode || WEXITSTATUS(status) == kNoNode) {
    WARN("skipped: there is no Node.js, or one before 18 (Debian: apt install nodejs)");
    return nullptr;
  }
  REQUIRE(status == 0);
  return parse_json(folder.read("drawn.json"), "the script's figures");
}

}  // namespace dgc::test
