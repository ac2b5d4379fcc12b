/** A report of damage in words. */
import type { Stretch } from './checked-load.ts'
import type { DamageReport, StepReport } from './damage.ts'
import type { Course } from './node-watch.ts'

export function describeDamage({ options, steps }: DamageReport): string {
  const { clients, rows, round, logStore } = options
  const sum = (of: (step: StepReport) => number): number =>
    steps.reduce((total, step) => total + of(step), 0)
  return [
    `${clients} clients, ${rows} rows, log_store ${logStore}; scrub, count and comparison every ${round} s`,
    ...steps.map(describeStep),
    `wrong values: ${sum(({ wrong }) => wrong)}; shown before the damage was found, where no checksum tells: ${sum(({ shownBeforeFound }) => shownBeforeFound)}`,
    '',
  ].join('\n')
}

export function describeStep(step: StepReport): string {
  const { before, meanwhile, courses, wrong, shownBeforeFound, readInTheEnd } = step
  return [
    step.step,
    ...courses.flatMap(describeCourse),
    `  before:    ${describeStretch(before)}`,
    `  meanwhile: ${describeStretch(meanwhile)}`,
    `  wrong values: ${wrong}; shown before found: ${shownBeforeFound}; rows read in the end: ${readInTheEnd}`,
    ...step.wrongTexts.map((text) => `    ${text}`),
  ].join('\n')
}

function describeCourse(course: Course): readonly string[] {
  const { node, hurt, outcome, ends, rebuilds, aside, mended, differences, miscounts } = course
  const times = [
    ...describeSeconds('ready', course.readySeconds),
    ...describeSeconds('found', course.foundSeconds),
    ...describeSeconds('lacked nothing', course.healedSeconds),
  ]
  return [
    `  ${node}: ${hurt}`,
    `    ${[outcome, ...times].join(', ')}`,
    `    ended by itself ${ends}, data/ made anew ${rebuilds}, groups aside ${aside}, mended ${mended}; found by comparing ${differences}, by counting ${miscounts}; damages of log/ told ${course.logDamages}`,
    ...course.said.map((text) => `    "${text}"`),
  ]
}

function describeSeconds(what: string, seconds: number | undefined): readonly string[] {
  return seconds === undefined ? [] : [`${what} after ${seconds.toFixed(1)} s`]
}

function describeStretch(stretch: Stretch): string {
  const { commitsPerSecond, p99Ms, readP99Ms, failures, worstGapMs } = stretch
  return `${Math.round(commitsPerSecond)} commits/s, p99 ${p99Ms.toFixed(0)} ms (reads ${readP99Ms.toFixed(0)} ms), longest time without a commit ${Math.round(worstGapMs)} ms, ${failures} failures, over ${stretch.seconds.toFixed(0)} s`
}
