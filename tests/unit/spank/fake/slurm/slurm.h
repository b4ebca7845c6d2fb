// What plugin.c takes of Slurm's header of this name.
#pragma once

#define SLURM_MAX_NORMAL_STEP_ID 0xffffff00u
