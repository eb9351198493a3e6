#pragma once

#include <string>
#include <vector>

#include "tools/report/report_data.h"
#include "tools/study/study_training.h"

namespace dgc {

// What a study has found so far: a row for each run. `trainings` are all of the study, `groups` the runs that have
// something to show, in the order of the study; `failures` become notes. A run without a finished step is a row of
// dashes.
SummaryTable study_table(const Study&, const std::vector<StudyTraining>& trainings, const std::vector<RunGroup>& groups,
                         const std::vector<std::string>& failures);
// Of what lies in the study's folder, the trainings whose result counts. What does not count becomes a note, unless the
// notes say already that the training has failed.
std::vector<StudyTraining> sound_ones(const std::vector<StudyTraining>&, std::vector<std::string>& notes);
// Reads what the trainings have written. A training whose files are damaged becomes a note.
std::vector<RunGroup> study_groups(const Study&, const std::vector<StudyTraining>&, std::vector<std::string>& notes);

}  // namespace dgc
