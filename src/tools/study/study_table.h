#pragma once

#include <vector>

#include "tools/report/report_data.h"
#include "tools/study/study_training.h"

namespace dgc {

// What a study has found so far: a row for each run. `trainings` are all of the study, `groups` the runs that have
// something to show, in the order of the study; `notes` come below. A run without a finished step is a row of
// dashes.
SummaryTable study_table(const Study&, const std::vector<StudyTraining>& trainings, const std::vector<RunGroup>& groups,
                         const std::vector<TrainingNote>& notes);
// Reads what the trainings have written. What the study does not ask for, and what is damaged, is left out and becomes
// a note, unless there is a note on the training already, because it has failed. What is not yet done is there without
// its outcome.
std::vector<RunGroup> study_groups(const Study&, const std::vector<StudyTraining>&, std::vector<TrainingNote>& notes);

}  // namespace dgc
