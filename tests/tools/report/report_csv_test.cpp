#include "tools/report/report_csv.h"

#include <catch.hpp>

#include "tensor/errors.h"
#include "tests/support/run_files.h"

namespace dgc {

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

TEST_CASE("no table is made of what is no run") {
  const test::TempRun empty;
  CHECK_THROWS_WITH(rows_csv({empty.path()}), Catch::Contains("not a run directory"));
}

}  // namespace dgc
