/** A wording that readers of technical English stumble over. */
export interface WordPattern {
  /** The word or the form, as a short name. */
  readonly name: string;
  /** Matches within one line. */
  readonly pattern: RegExp;
  /** What the wording hides from the reader. */
  readonly reason: string;
  /** What to write. */
  readonly instead: string;
  /** Lines that the pattern matches. */
  readonly examples: readonly string[];
}

/** Every wording that `npm run lint` counts. This file and its test are exempt from the count. */
export const wordList: readonly WordPattern[] = [
  {
    name: 'nobody, somebody',
    pattern: /\b(?:no|some)body\b/i,
    reason: 'hides who acts',
    instead: 'name the actor by its term: "another process deleted the table", "no controller updates the rules"',
    examples: ['// Nobody updates those rules.', "log.warn('somebody deleted our table')"],
  },
  {
    name: 'told, tells',
    pattern: /\b(?:is|are|was|were|be|been|being) told\b|\btells?\b(?! (?:the )?(?:kubectl|user|operator))/i,
    reason: 'programs do not talk; the sentence hides which value goes where',
    instead: '"reports", "returns", "sets", "notifies the reconciler", "says"',
    examples: ['// The reconciler is told of the change.', '/** Tells why the apply failed. */'],
  },
  {
    name: 'asked for, asked of',
    pattern: /\bask(?:s|ed)? (?:for|of)\b|\b(?:is|are) asked\b/i,
    reason: 'hides who needs the value and how it gets it',
    instead: '"requests", "reads", "needs", "the option that the caller passes"',
    examples: ['// Only what is asked for is printed.', '/** The kernel is asked once a second. */'],
  },
  {
    name: 'a clause in the place of a noun',
    pattern: /^\W*(?:What|Whose|That|(?:For h|H)ow long|Of (?:what|those|two|all|each)) \w/,
    reason: 'a free-standing clause leaves open what the thing is',
    instead: 'a noun phrase or a sentence about the thing: "Kernel elements that differ from the rendering."',
    examples: [
      '/** What the kernel holds of a service. */',
      '// Of two that match, the first wins.',
      'Whose end is near.',
    ],
  },
  {
    name: 'is to be',
    pattern: /\b(?:is|are|was|were) to be\b|\bha(?:s|ve) to become\b/i,
    reason: 'reads as duty, plan or fate alike',
    instead: '"must be", "will be", or the plain present: "the agent writes it"',
    examples: ['// The chain is to be removed.', '/** Becomes what it has to become. */'],
  },
  {
    name: 'ours, theirs',
    pattern: /\b(?:of|is|are) ours\b|\bof theirs\b|\bits own kind\b/i,
    reason: 'the reader does not know who "we" are at this place',
    instead: 'name the owner: "a table of this agent", "chains of kube-proxy"',
    examples: ['// A table of ours is missing.', '// Chains of theirs stay.', 'It meets one of its own kind.'],
  },
  {
    name: 'so many, so long as a measure',
    pattern: /\b(?:for|after|of) so (?:many|long|much)\b|^\W*So (?:many|long|much)\b/,
    reason: 'a field or option whose meaning, unit and default are missing',
    instead: '"Maximum number of entries.", "Minimum interval between warnings, in milliseconds."',
    examples: ['/** So many entries are kept. */', '// A socket stays open for so long.'],
  },
  {
    name: 'whoever, whatever',
    pattern: /\bwh(?:o|at)ever\b/i,
    reason: 'hides which callers or values there are',
    instead: 'name them: "each caller", "any value of the set"',
    examples: ['// Whoever holds the lock writes.', '// Works on whatever comes.'],
  },
  {
    name: 'all the same, thereby, at that',
    pattern: /\ball the same\b|\bthereby\b|\bat that\b\./i,
    reason: 'filler that non-native readers look up',
    instead: 'leave it out, or "anyway", "by this"',
    examples: ['// It is written all the same.', '// and is thereby known', 'A long one at that.'],
  },
  {
    name: 'a home',
    pattern: /\b(?:one|a) home (?:for|each|of)\b/i,
    reason: 'an image in the place of a term',
    instead: '"the one module that holds …", "a folder for …"',
    examples: ['/** One home for all names. */'],
  },
  {
    name: 'for itself, of itself',
    pattern: /\bfor (?:itself|themselves)\b|\bof itself\b/i,
    reason: 'an idiom with several meanings',
    instead: '"separately", "alone", "without a caller"',
    examples: ['// Each family is applied for itself.', '// It ends of itself.'],
  },
  {
    name: 'that is gone',
    pattern: /\bthat (?:is|are|was|were) gone\b|\bgone by\b/i,
    reason: 'does not say what happened to it',
    instead: '"deleted", "closed", "expired", "no longer listed"',
    examples: ['// Flows to an endpoint that is gone.', 'The time gone by since then.'],
  },
  {
    name: 'data that comes and goes',
    pattern: /\b(?:comes|came|goes|went) (?:back|by|into|out of|there) (?:its|the|a)\b/i,
    reason: 'makes a traveller of a value',
    instead: '"is read from", "is stored in", "returns to"',
    examples: ['// The address comes out of the slice.', '// It went into the map.'],
  },
];
