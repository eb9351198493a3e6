#include "tests/tools/report/page_script.h"

#include <algorithm>
#include <catch.hpp>
#include <cstdlib>

#include "json/text.h"
#include "paths.h"
#include "tests/support/shell.h"
#include "tests/tools/report/made_runs.h"

namespace dgc {
namespace {

using test::between;
using test::command_of;
using test::drawn_by_script;
using test::has;
using test::make_run;
using test::occurrences;
using test::page_curves;
using test::quoted;
using test::report;
using test::TempRun;

// The first group's curve in a plot; null where the group has none, or where there is no such plot.
Json curve_in(const Json& all, const std::string& key) {
  for (const Json& plot : all.at("plots")) {
    if (plot.at("key") == key && plot.at("curves").at(0).at("run") == 0) return plot.at("curves").at(0);
  }
  return nullptr;
}

// The figures over epochs that readers without a script see.
struct StaticFigure {
  std::string caption;
  size_t lines = 0, markers = 0, bands = 0;
  std::vector<std::string> ends;
};
std::vector<StaticFigure> static_figures_of(const std::string& page) {
  const std::string section = between(page, "<section class=\"figures epochs\">", "</section>");
  std::vector<StaticFigure> figures;
  for (size_t at = section.find("<figure>"); at != std::string::npos; at = section.find("<figure>", at + 1)) {
    const std::string figure = section.substr(at, section.find("</figure>", at) - at);
    figures.push_back({.caption = between(figure, "<figcaption>", "<"),
                       .lines = occurrences(figure, "<path"),
                       .markers = occurrences(figure, "<circle"),
                       .bands = occurrences(figure, "<polygon"),
                       .ends = {}});
    for (size_t end = figure.find("class=\"end"); end != std::string::npos; end = figure.find("class=\"end", end + 1)) {
      figures.back().ends.push_back(between(figure.substr(end), ">", "<"));
    }
  }
  return figures;
}

// Both draw the same runs, with the same values at the end.
void check_alike(const Json& drawn, const std::vector<StaticFigure>& still) {
  REQUIRE(drawn.size() == still.size());
  for (size_t i = 0; i < still.size(); ++i) {
    INFO(still[i].caption);
    CHECK(drawn[i].at("caption") == still[i].caption);
    CHECK(drawn[i].at("lines").size() == still[i].lines);
    CHECK(drawn[i].at("markers") == still[i].markers);
    CHECK(std::ranges::count_if(drawn[i].at("bands"), [](const Json& band) { return !band.empty(); }) ==
          static_cast<int64_t>(still[i].bands));
    CHECK(drawn[i].at("ends") == Json(still[i].ends));
  }
}

}  // namespace

TEST_CASE("the page's script gets every curve over epochs, steps, time and bytes") {
  TempRun run;
  make_run(run, {.name = "sparse"});  // 10 steps of 2000 bytes, 10 of 20; 0.25 s a step
  const Json all = page_curves(report({run.path()}));
  std::vector<std::string> axes, plots;
  for (const Json& axis : all.at("axes")) axes.push_back(axis.at("key"));
  for (const Json& plot : all.at("plots")) plots.push_back(plot.at("key"));
  CHECK(axes == std::vector<std::string>{"epoch", "step", "time", "bytes"});
  CHECK(plots == std::vector<std::string>{"loss", "grad_norm", "test_loss", "test_accuracy", "test_top5", "lr",
                                          "sent_bytes", "sparsity"});
  const Json& one = all.at("runs").at(0);
  CHECK((one.at("name") == "sparse" && one.at("look") == "r0 d0" && one.at("seeds") == 1));
  const Json &steps = one.at("steps"), &evaluations = one.at("evaluations");
  CHECK(steps.at("step").size() == 20);
  CHECK((steps.at("epoch").at(4) == 0.5 && steps.at("step").at(4) == 5 && steps.at("bytes").at(4) == 10000));
  CHECK(steps.at("time").at(4) == 5 * 0.25);
  CHECK(steps.at("bytes").back() == 20200);
  CHECK((evaluations.at("step") == Json({10, 20}) && evaluations.at("bytes") == Json({20000, 20200})));
  const Json loss = curve_in(all, "loss");
  CHECK((loss.at("at") == "steps" && loss.at("y").at(0) == 2 && loss.at("y").at(6).is_null()));
  CHECK_FALSE(loss.contains("low"));  // each place is one step
  CHECK(curve_in(all, "test_top5").at("at") == "evaluations");
  CHECK(curve_in(all, "test_top5").at("y") == Json({0.9, 0.9}));
  CHECK(curve_in(all, "wer").is_null());
}

TEST_CASE("no name of a run ends the page's script, and no other script runs") {
  TempRun run;
  make_run(run, {});
  const auto hostile = run.path() / "<" / "script><!--<script>alert(1)<" / "script>";
  std::filesystem::create_directories(hostile);
  for (const char* file : {"config.json", "metrics.jsonl"}) std::filesystem::copy(run.path() / file, hostile / file);
  const std::string page = report({hostile, run.path()});
  CHECK(occurrences(page, "<script") == 2);
  CHECK(occurrences(page, "</script>") == 2);
  CHECK(page_curves(page).at("runs").at(0).at("name") == hostile.string());
  const std::string policy = between(page, "Content-Security-Policy\" content=\"", "\"");
  CHECK_THAT(policy, Catch::StartsWith("default-src 'none'"));
  CHECK(has(page, "<script nonce=\"" + between(policy, "script-src 'nonce-", "'") + "\">"));
  CHECK_FALSE(has(page, "data-reload"));
}

TEST_CASE("the page's script draws what the figures without it show") {
  std::vector<TempRun> folders(20);
  std::vector<std::filesystem::path> runs;
  for (size_t i = 0; i < folders.size(); ++i) {
    const auto n = static_cast<double>(i);
    make_run(folders[i], {.name = "run" + std::to_string(i), .accuracy = 0.5 + n / 64, .loss = 2 + n / 4});
    runs.push_back(folders[i].path());
  }
  SECTION("of many runs, some last values of the whole range") {
    const std::string page = report(runs);
    const Json drawn = drawn_by_script(page, "");
    if (drawn.is_null()) return;
    check_alike(drawn[0], static_figures_of(page));
    const Json& ends = drawn[0][1].at("ends");
    CHECK(ends.size() == 16);
    CHECK((ends.front() == "79.69 %" && ends.back() == "50 %"));
  }
  SECTION("of a run with one evaluation, markers in the place of lines") {
    TempRun begun;
    make_run(begun, {.name = "begun", .steps = 10, .finished = false});
    const std::string page = report({begun.path(), runs[0]});
    const Json drawn = drawn_by_script(page, "");
    if (drawn.is_null()) return;
    check_alike(drawn[0], static_figures_of(page));
    CHECK((drawn[0][0].at("markers") == 0 && drawn[0][1].at("markers") == 1));  // loss, test accuracy
  }
  SECTION("of several seeds, bands within the frame") {
    TempRun longer;
    make_run(longer, {.name = "run0", .steps = 36, .seed = 2, .accuracy = 0.9, .loss = 3});
    const std::string page = report({runs[0], longer.path(), runs[1]});
    const Json drawn = drawn_by_script(page, "");
    if (drawn.is_null()) return;
    check_alike(drawn[0], static_figures_of(page));
    for (size_t i = 0; i < 2; ++i) {
      const Json& bands = drawn[0][i].at("bands");
      REQUIRE(bands.size() == 2);                           // the first group's is drawn last
      CHECK(bands[1].size() == (i == 0 ? 2 * 35 : 2 * 3));  // no loss at step 7
      for (const Json& point : bands[1]) CHECK((point[1] > 14 && point[1] < 276));
    }
  }
  SECTION("over another axis, zoomed, with values to read and without some of the runs") {
    TempRun slow;
    make_run(slow, {.name = "run0", .steps = 12, .finished = false, .seed = 2, .loss = 3});
    const Json drawn = drawn_by_script(report({runs[0], slow.path(), runs[1]}),
                                       "click over-time read loss 1 click over-step drag loss 0.2 0.8 click run-1 "
                                       "click over-bytes");
    if (drawn.is_null()) return;
    const auto loss = [&](size_t shot) { return drawn.at(shot).at(0); };
    CHECK(loss(0).at("over") == "epochs");
    CHECK(loss(1).at("over") == "training time");
    const Json lines = loss(1).at("lines");
    for (const Json& line : lines) {
      CHECK(std::ranges::is_sorted(line, {}, [](const Json& point) { return point[0].get<double>(); }));
    }
    CHECK(loss(2).at("values") == "after 5 s0.1 0.1125 ");
    CHECK(loss(3).at("over") == "steps");
    CHECK(loss(4).at("ends") == Json({"0.1406", "0.125"}));  // of step 16
    CHECK(loss(4).at("lines").size() == 2);
    CHECK(loss(5).at("ends") == Json({"0.125"}));
    CHECK(loss(6).at("over") == "bytes sent per worker (log scale)");
    const Json& sent = drawn.at(5).at(2);
    CHECK(sent.at("caption") == "Sent by each worker in a step (log scale)");
    CHECK(sent.at("spoken") == "Sent by each worker in a step (log scale) over steps");
  }
}

TEST_CASE("the page's axes have ticks to read values by, however short they are") {
  TempRun run;
  make_run(run, {.steps = 148, .loss = 2.3});
  const Json drawn = drawn_by_script(report({run.path()}), "");
  if (drawn.is_null()) return;
  const auto ticks = [&](const std::string& caption) {
    for (const Json& figure : drawn.at(0)) {
      if (figure.at("caption") == caption) return figure.at("ticks");
    }
    return Json();
  };
  CHECK(ticks("Training loss (log scale)") == Json({"0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"}));
}

TEST_CASE("a part of the page that was shown alone is forgotten where other runs have no such part") {
  TempRun run;
  make_run(run, {.steps = 20});  // two epochs
  const std::string page = report({run.path()});
  const Json whole = drawn_by_script(page, "");
  if (whole.is_null()) return;
  CHECK(drawn_by_script(page, "", R"({"zoom": [8, 12]})") == whole);
  CHECK(drawn_by_script(page, "", R"({"zoom": [1, 12]})") != whole);
}

TEST_CASE("a finger reads a figure's values, which stay when it is lifted, and two taps show all again") {
  TempRun run;
  make_run(run, {});
  const Json drawn = drawn_by_script(report({run.path()}),
                                     "read loss 1 leave loss tap loss 1 slide loss 0 0.5 drag loss 0.25 0.75 "
                                     "tap loss 0.5 tap loss 0.5");
  if (drawn.is_null()) return;
  const auto values = [&](size_t shot) { return drawn.at(shot).at(0).at("values").get<std::string>(); };
  const auto lines = [&](size_t shot) { return drawn.at(shot).at(0).at("lines"); };
  CHECK(values(1) == "epoch 20.1 ");
  CHECK(values(2).empty());  // the mouse has left
  CHECK(values(3) == "epoch 20.1 ");
  CHECK(values(4) == "epoch 10.2 ");
  CHECK(lines(4) == lines(0));  // a finger does not zoom, and a mouse does
  CHECK(lines(5) != lines(0));
  CHECK(values(6) == "epoch 10.2 ");
  CHECK(lines(6) == lines(5));
  CHECK(lines(7) == lines(0));
}

// How a browser takes it needs one, and one is not everywhere.
TEST_CASE("a browser draws the curves") {
  if (std::system("chromium --version > /dev/null 2>&1") != 0) {
    WARN("skipped: there is no chromium (Debian: apt install chromium)");
    return;
  }
  TempRun run, out;
  make_run(run, {});
  const auto page = out.path() / "report.html", seen = out.path() / "seen.html";
  write_report(read_groups({run.path()}), page);
  const std::string command = command_of({"timeout", "60", "chromium", "--headless", "--no-sandbox", "--disable-gpu",
                                          "--user-data-dir=" + (out.path() / "browser").string(), "--dump-dom", page});
  if (std::system((command + " > " + quoted(seen) + " 2> /dev/null").c_str()) != 0) {
    WARN("skipped: chromium is there and does not run");
    return;
  }
  const std::string drawn = between(out.read("seen.html"), "<div id=\"explore\">", "<div class=\"static\">");
  CHECK(occurrences(drawn, "<figure>") == 4);
  CHECK(occurrences(drawn, "class=\"line r0 d0\" d=\"M") == 4);
  CHECK(has(drawn, "for=\"over-bytes\">bytes sent per worker (log scale)</label>"));
}

}  // namespace dgc
