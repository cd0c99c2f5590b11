/* Methods that are off at this site: those that SWITCHPOINT_OFF lists, by name or by spec, and by the word
   node-memory all that take memory of the node. */
#ifndef SWP_OFF_H
#define SWP_OFF_H

#include "method.h"

#define SWP_OFF "SWITCHPOINT_OFF"
#define SWP_WHY_OFF "off at this site, by " SWP_OFF

/* Returns whether the method is off, with any parameters or with these. Local. */
bool swp_is_off(const struct spec *spec);

/* Neither off nor not applicable. Local. */
bool swp_is_candidate(const struct spec *spec, const struct features *features);

/* SWP_ERR_NOT_APPLICABLE for a method that is off. Local. */
int swp_off_refuse(const struct spec *spec);

/* Checks that every word of the list means methods, and none a default, which all else falls back to. Local.
   Errors: SWP_ERR_METHOD. */
int swp_off_check(void);

#endif
