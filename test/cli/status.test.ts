/** The words of `trilithon status` about a node, beside its state. */
import { expect, test } from 'vitest'
import { scrubText } from '../../src/cli/status.ts'

test('DISK-15: status shows how far the scrub is, and whether one went through before', () => {
  const texts = [
    scrubText(undefined),
    scrubText({}),
    scrubText({ scrubbedPart: 0.409, scrubPasses: 0 }),
    scrubText({ scrubbedPart: 1, scrubPasses: 1 }),
    scrubText({ scrubbedPart: 0.02, scrubPasses: 2 }),
    scrubText({ scrubbedPart: 1, scrubPasses: 1, logScrubbedPart: 0.5 }),
    scrubText({ scrubbedPart: 0.1, scrubPasses: 0, rowScrubPasses: 1 }),
    scrubText({ scrubbedPart: 1, scrubPasses: 1, logScrubbedPart: 1, rowScrubPasses: 2 }),
  ]
  expect(texts).toEqual([
    '-',
    '-',
    '40 %',
    '100 %, 1 pass',
    '2 %, 2 passes',
    '100 %, 1 pass, log 50 %',
    '10 %, rows 1 pass',
    '100 %, 1 pass, log 100 %, rows 2 passes',
  ])
})
