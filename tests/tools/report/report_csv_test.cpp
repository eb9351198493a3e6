#include "tools/report/report_csv.h"

#include <catch.hpp>

#include "tensor/errors.h"
#include "tests/support/run_files.h"

namespace dgc {
namespace {

std::string rows_csv(const std::vector<std::filesystem::path>& runs) {
  std::string csv;
  write_rows_csv(runs, [&](const std::string& record) { csv += record; });
  return csv;
}

}  // namespace

TEST_CASE("rows of several runs become one table, with numbers as they are in the files") {
  const test::TempRun a, b;
  a.write("config.json", "{}");
  a.write("metrics.jsonl",
          "{\"kind\":\"step\",\"step\":1,\"epoch\":0.1,\"loss\":1e-05,\"skipped\":false,\"transport\":\"sparse\"}\n"
          "{\"kind\":\"eval\",\"step\":1,\"epoch\":0.1,\"test_loss\":0.30000000000000004}\n{\"kind\":\"st");
  const std::filesystem::path comma = b.path() / "a,\"b\"";
  std::filesystem::create_directories(comma);
  b.write("a,\"b\"/config.json", "{}");
  b.write("a,\"b\"/metrics.jsonl", "{\"kind\":\"step\",\"step\":2,\"epoch\":1,\"loss\":null,\"left_out\":3}\n");
  const std::string first = a.path().string(), second = b.path().string();
  CHECK(rows_csv({a.path(), comma}) == "run,kind,step,epoch,loss,skipped,transport,test_loss,left_out\n" +  //
                                           first + ",step,1,0.1,1e-05,false,sparse,,\n" +                   //
                                           first + ",eval,1,0.1,,,,0.30000000000000004,\n" +                //
                                           "\"" + second + "/a,\"\"b\"\"\",step,2,1,,,,,3\n");
}

TEST_CASE("a field with a quotation mark or the end of a line is quoted") {
  const test::TempRun run;
  run.write("config.json", "{}");
  run.write("metrics.jsonl", R"({"kind":"step","step":1,"epoch":1,"transport":"a\"b","note":"c\nd"})"
                             "\n");
  CHECK_THAT(rows_csv({run.path()}), Catch::EndsWith(",step,1,1,\"a\"\"b\",\"c\nd\"\n"));
}

TEST_CASE("what a training adds while a table is written is left out of it") {
  const test::TempRun run;
  run.write("config.json", "{}");
  const std::string row = R"({"kind":"step","step":1,"epoch":1})"
                          "\n";
  run.write("metrics.jsonl", row);
  std::string csv;
  write_rows_csv({run.path()}, [&](const std::string& record) {
    if (csv.empty())
      run.write("metrics.jsonl", row + R"({"kind":"eval","step":1,"epoch":1,"test_loss":2})"
                                       "\n");
    csv += record;
  });
  CHECK(csv == "run,kind,step,epoch\n" + run.path().string() + ",step,1,1\n");
}

TEST_CASE("no table is made of what is no run") {
  const test::TempRun empty;
  CHECK_THROWS_WITH(rows_csv({empty.path()}), Catch::Contains("not a run directory"));
}

}  // namespace dgc
