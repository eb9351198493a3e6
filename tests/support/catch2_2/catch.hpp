// Catch2 2, as Debian 12 has it. CMake puts this folder or its neighbour catch2_3 into the include path, so that tests
// name everything alike with either version.
#pragma once

#include <catch2/catch.hpp>
