import { findBoundaryFaults } from './boundaries.ts';
import { findHouseRuleFaults } from './house-rules.ts';

// What oxlint cannot say: which package may import which, and which ambient names are allowed where.

const faults = [...findBoundaryFaults(), ...findHouseRuleFaults()];
for (const fault of faults) console.error(fault);
if (faults.length > 0) {
  console.error(`house rules: ${faults.length} fault(s); the rules are in ARCHITECTURE.md`);
  process.exitCode = 1;
}
