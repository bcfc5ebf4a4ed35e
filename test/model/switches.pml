/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration and the rules, read from the environment by name, so that one compiled verifier serves all of them.
 * Hidden: they are no part of the state. See protocol.pml for what they mean.
 */

#define MANAGERS 3              /* the most that NM may be */

hidden byte NM = 2;
hidden byte LIMIT = 1;
hidden byte FAULTS = 1;
hidden byte CRASH = 0;
hidden byte RETRY = 0;
hidden byte RESERVE = 0;
hidden byte HTTP = 0;
hidden byte CANCELS = 0;
hidden byte DELETES = 0;
hidden byte HISTORY = 0;
hidden byte ADOPT = 0;
hidden byte NOB = 0;

hidden byte F_LEDGER = 1;
hidden byte F_TOUCH = 1;
hidden byte F_KEEP = 1;
hidden byte F_ORDER = 1;
hidden byte F_LIVE = 1;
hidden byte F_EPOCH = 1;
hidden byte F_PINRV = 1;
hidden byte F_SWAPRES = 1;
hidden byte F_RESOLVE = 1;
hidden byte F_OWN = 1;
hidden byte F_ANSWERED = 1;
hidden byte F_GRANT = 1;
hidden byte F_CHAIN = 1;
hidden byte F_SLOT = 1;
hidden byte F_SIGNS = 1;
hidden byte F_MARK = 1;
hidden byte F_MARKCAS = 1;
hidden byte F_NORETRY = 1;
hidden byte F_CAS = 1;
hidden byte F_CANCELCAS = 1;
hidden byte F_DECIDE = 1;
hidden byte F_OCCUPY = 1;
hidden byte F_SUSPEND = 1;
hidden byte F_VERDICT = 1;
hidden byte F_HTTPDEAD = 1;
hidden byte F_EXPIRECAS = 1;
hidden byte F_ALLOW = 1;
hidden byte F_CUT = 1;
hidden byte F_ACK = 1;
hidden byte F_HISTSETTLED = 1;
hidden byte F_HISTSTOPPED = 1;
hidden byte F_HISTPRE = 1;
hidden byte A_QUIET = 1;

c_decl {
\#include <stdlib.h>
}

inline configure() {
  c_code {
    if (getenv("NM")) NM = atoi(getenv("NM"));
    if (getenv("LIMIT")) LIMIT = atoi(getenv("LIMIT"));
    if (getenv("FAULTS")) FAULTS = atoi(getenv("FAULTS"));
    if (getenv("CRASH")) CRASH = atoi(getenv("CRASH"));
    if (getenv("RETRY")) RETRY = atoi(getenv("RETRY"));
    if (getenv("RESERVE")) RESERVE = atoi(getenv("RESERVE"));
    if (getenv("HTTP")) HTTP = atoi(getenv("HTTP"));
    if (getenv("CANCELS")) CANCELS = atoi(getenv("CANCELS"));
    if (getenv("DELETES")) DELETES = atoi(getenv("DELETES"));
    if (getenv("HISTORY")) HISTORY = atoi(getenv("HISTORY"));
    if (getenv("ADOPT")) ADOPT = atoi(getenv("ADOPT"));
    if (getenv("NOB")) NOB = atoi(getenv("NOB"));
    if (getenv("F_LEDGER")) F_LEDGER = atoi(getenv("F_LEDGER"));
    if (getenv("F_TOUCH")) F_TOUCH = atoi(getenv("F_TOUCH"));
    if (getenv("F_KEEP")) F_KEEP = atoi(getenv("F_KEEP"));
    if (getenv("F_ORDER")) F_ORDER = atoi(getenv("F_ORDER"));
    if (getenv("F_LIVE")) F_LIVE = atoi(getenv("F_LIVE"));
    if (getenv("F_EPOCH")) F_EPOCH = atoi(getenv("F_EPOCH"));
    if (getenv("F_PINRV")) F_PINRV = atoi(getenv("F_PINRV"));
    if (getenv("F_SWAPRES")) F_SWAPRES = atoi(getenv("F_SWAPRES"));
    if (getenv("F_RESOLVE")) F_RESOLVE = atoi(getenv("F_RESOLVE"));
    if (getenv("F_OWN")) F_OWN = atoi(getenv("F_OWN"));
    if (getenv("F_ANSWERED")) F_ANSWERED = atoi(getenv("F_ANSWERED"));
    if (getenv("F_GRANT")) F_GRANT = atoi(getenv("F_GRANT"));
    if (getenv("F_CHAIN")) F_CHAIN = atoi(getenv("F_CHAIN"));
    if (getenv("F_SLOT")) F_SLOT = atoi(getenv("F_SLOT"));
    if (getenv("F_SIGNS")) F_SIGNS = atoi(getenv("F_SIGNS"));
    if (getenv("F_MARK")) F_MARK = atoi(getenv("F_MARK"));
    if (getenv("F_MARKCAS")) F_MARKCAS = atoi(getenv("F_MARKCAS"));
    if (getenv("F_NORETRY")) F_NORETRY = atoi(getenv("F_NORETRY"));
    if (getenv("F_CAS")) F_CAS = atoi(getenv("F_CAS"));
    if (getenv("F_CANCELCAS")) F_CANCELCAS = atoi(getenv("F_CANCELCAS"));
    if (getenv("F_DECIDE")) F_DECIDE = atoi(getenv("F_DECIDE"));
    if (getenv("F_OCCUPY")) F_OCCUPY = atoi(getenv("F_OCCUPY"));
    if (getenv("F_SUSPEND")) F_SUSPEND = atoi(getenv("F_SUSPEND"));
    if (getenv("F_VERDICT")) F_VERDICT = atoi(getenv("F_VERDICT"));
    if (getenv("F_HTTPDEAD")) F_HTTPDEAD = atoi(getenv("F_HTTPDEAD"));
    if (getenv("F_EXPIRECAS")) F_EXPIRECAS = atoi(getenv("F_EXPIRECAS"));
    if (getenv("F_ALLOW")) F_ALLOW = atoi(getenv("F_ALLOW"));
    if (getenv("F_CUT")) F_CUT = atoi(getenv("F_CUT"));
    if (getenv("F_ACK")) F_ACK = atoi(getenv("F_ACK"));
    if (getenv("F_HISTSETTLED")) F_HISTSETTLED = atoi(getenv("F_HISTSETTLED"));
    if (getenv("F_HISTSTOPPED")) F_HISTSTOPPED = atoi(getenv("F_HISTSTOPPED"));
    if (getenv("F_HISTPRE")) F_HISTPRE = atoi(getenv("F_HISTPRE"));
    if (getenv("A_QUIET")) A_QUIET = atoi(getenv("A_QUIET"));
  }
}
