import { findBoundaryFaults } from './boundaries.ts';
import { findHouseRuleFaults } from './house-rules.ts';

// Rules beyond oxlint: which package may import which, and where ambient names are allowed.

const faults = [...findBoundaryFaults(), ...findHouseRuleFaults()];
for (const fault of faults) console.error(fault);
if (faults.length > 0) {
  console.error(`house rules: ${faults.length} fault(s); the rules are in ARCHITECTURE.md`);
  process.exitCode = 1;
}
