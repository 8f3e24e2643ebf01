#include <gtest/gtest.h>

#include "workers/sources/scan_description.h"

namespace patchbay::workers {
namespace {

TEST(AperioDescription, NumbersAreReadFromTrimmedFields) {
  const auto said = ParseAperioDescription(
      "Aperio Image Library v11.2.1 \r\n46000x32914 JPEG/RGB Q=30|AppMag = 20| MPP =  0.4990 |Left "
      "= 1");
  EXPECT_DOUBLE_EQ(said.mpp.value_or(0), 0.499);
  EXPECT_DOUBLE_EQ(said.objective_power.value_or(0), 20);
}

TEST(AperioDescription, DecimalCommaIsAPoint) {
  EXPECT_DOUBLE_EQ(ParseAperioDescription("Aperio|MPP=0,2525|AppMag=40,5").mpp.value_or(0), 0.2525);
  EXPECT_DOUBLE_EQ(ParseAperioDescription("Aperio|AppMag=40,5").objective_power.value_or(0), 40.5);
}

TEST(AperioDescription, LastOfTwoKeysCounts) {
  EXPECT_DOUBLE_EQ(ParseAperioDescription("Aperio|MPP = 1|MPP = 2").mpp.value_or(0), 2);
}

TEST(AperioDescription, MppIsNeverDerived) {
  const auto said = ParseAperioDescription("Aperio|AppMag = 40|Filename = x=1");
  EXPECT_FALSE(said.mpp.has_value());
  EXPECT_DOUBLE_EQ(said.objective_power.value_or(0), 40);
}

TEST(AperioDescription, WhatIsNoPositiveNumberIsAbsent) {
  for (const char* text : {"Aperio|MPP", "Aperio|MPP=", "Aperio|MPP=abc", "Aperio|MPP=0",
                           "Aperio|MPP=-1", "Aperio|MPPX=2", "Aperio|XMPP=2", "Aperio|MPP=nan",
                           "Aperio|MPP=inf", "Aperio|MPP=0.5x", "", "|||", "Aperio|mpp=1"}) {
    EXPECT_FALSE(ParseAperioDescription(text).mpp.has_value()) << text;
  }
}

TEST(AperioDescription, VariantsOfOtherScannersCount) {
  EXPECT_TRUE(IsAperioDescription("Aperio Image Library v12"));
  EXPECT_TRUE(IsAperioDescription("Aperio Image, Grundium"));
  EXPECT_TRUE(IsAperioDescription("Aperio Leica Biosystems GT450 v1.0.1"));
  EXPECT_FALSE(IsAperioDescription("Image by Aperio"));
  EXPECT_FALSE(IsAperioDescription(""));
}

}  // namespace
}  // namespace patchbay::workers
