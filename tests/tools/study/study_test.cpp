#include <catch.hpp>

#include "tests/support/shipped.h"
#include "tools/study/study_training.h"

namespace dgc {

TEST_CASE("every shipped study names configs and runs that exist") {
  const std::vector<std::string> studies = test::shipped_studies();
  CHECK(studies.size() >= 10);
  for (const std::string& file : studies) {
    CAPTURE(file);
    const Study study = load_study(file);
    CHECK(study.runs.size() >= 2);
    for (const StudyTraining& training : trainings_of(study, "out")) {
      CAPTURE(training.name());
      const Config& config = training.config;
      CHECK(config.seed == training.seed);
      CHECK(config.name == training.run->name);
    }
  }
}

}  // namespace dgc
