/**
 * The form that the tree must have, as functions over a root folder that answer with complaints: one line
 * each, file first. The test runs them on this tree, and on small trees with one fault each.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, posix } from 'node:path'
import { arrows, nestedFolders } from './arrows.ts'

/** Where even waiting is forbidden: a step is a function of state and event. */
const synchronousFolders = ['paxos', 'placement', 'replication', 'lease']

const codeFolders = ['src', 'sim', 'schema', 'bench', 'test']
const fileLinesMax = 500

const topLevel = new Set([
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'README.md', 'LICENSE'],
  ...codeFolders,
])

/** The linter's rules that are part of the architecture; the rest is `npm run lint`. */
const architectureLints = new Set(
  ['restricted-globals', 'restricted-imports', 'restricted-properties']
    .map((name) => `eslint(no-${name})`)
    .concat('eslint(max-lines-per-function)'),
)

/** Paths of all files under `folder` that end so, with forward slashes, from `root`. */
export function filesUnder(root: string, folder: string, ending: string): string[] {
  if (statSync(join(root, folder), { throwIfNoEntry: false }) === undefined) return []
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((found) => {
    const path = posix.join(folder, found.name)
    if (found.isDirectory()) return filesUnder(root, path, ending)
    return path.endsWith(ending) ? [path] : []
  })
}

function read(root: string, path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

function sourcesOf(root: string): string[] {
  return codeFolders.flatMap((folder) => filesUnder(root, folder, '.ts'))
}

/** The row of the table that a file belongs to. */
function folderOf(path: string): string {
  const [top = '', below = '', deeper, deepest] = path.split('/')
  if (top !== 'src' || deeper === undefined) return top
  const nested = `${below}/${deeper}`
  return deepest !== undefined && nestedFolders.has(nested) ? nested : below
}

/** The files that a file imports by a relative path; types count too. */
function importsOf(root: string, path: string): string[] {
  const text = read(root, path)
  const forms = [
    /^(?:import|export)\b(?:[^'";]*?\bfrom)?\s*'(\.[^']+)'/gm,
    /\bimport\(\s*'(\.[^']+)'/g,
  ]
  return forms.flatMap((form) =>
    [...text.matchAll(form)].map((match) => posix.join(dirname(path), match[1] ?? '')),
  )
}

export function checkArrows(root: string): string[] {
  return sourcesOf(root).flatMap((path) => {
    const from = folderOf(path)
    const allowed = arrows[from]
    if (allowed === undefined) return [`${path}: folder ${from} is not in the table of arrows`]
    return importsOf(root, path)
      .filter((target) => folderOf(target) !== from && !allowed.includes(folderOf(target)))
      .map((target) => `${path}: new arrow ${from} -> ${folderOf(target)} (imports ${target})`)
  })
}

/** An arrow that the table allows and no file uses: the table is a drawing, not a bound. */
export function checkUnusedArrows(
  root: string,
  allowed: Readonly<Record<string, readonly string[]>> = arrows,
): string[] {
  const used = new Set(
    sourcesOf(root).flatMap((path) =>
      importsOf(root, path).map((target) => `${folderOf(path)} -> ${folderOf(target)}`),
    ),
  )
  return Object.entries(allowed).flatMap(([from, targets]) =>
    targets
      .filter((target) => !used.has(`${from} -> ${target}`))
      .map((target) => `${from} -> ${target}: no file uses this arrow`),
  )
}

/** One complaint for each import that closes a circle of files. */
export function checkCycles(root: string): string[] {
  const complaints: string[] = []
  const done = new Set<string>()
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start >= 0) {
      const circle = [...trail.slice(start), path].join(' -> ')
      complaints.push(`${trail.at(-1)}: import cycle ${circle}`)
    }
    if (start >= 0 || done.has(path)) return
    const isThere = statSync(join(root, path), { throwIfNoEntry: false }) !== undefined
    if (isThere) for (const target of importsOf(root, path)) visit(target, [...trail, path])
    done.add(path)
  }
  for (const path of sourcesOf(root)) visit(path, [])
  return complaints
}

export function checkFileSizes(root: string): string[] {
  return sourcesOf(root).flatMap((path) => {
    const lines = read(root, path).trimEnd().split('\n').length
    return lines > fileLinesMax ? [`${path}: ${lines} lines, at most ${fileLinesMax}`] : []
  })
}

export function checkSynchronous(root: string): string[] {
  const folders = synchronousFolders.map((folder) => `src/${folder}`)
  return folders
    .flatMap((folder) => filesUnder(root, folder, '.ts'))
    .flatMap((path) => {
      const code = read(root, path).replaceAll(/\/\*[^]*?\*\/|\/\/.*|'[^'\n]*'/g, '')
      const word = /\b(?:async|await|Promise)\b/.exec(code)?.[0]
      return word === undefined ? [] : [`${path}: '${word}' in a folder that never waits`]
    })
}

interface Finding {
  readonly code: string
  readonly filename: string
  readonly message: string
}

/** Forbidden globals and imports, and long functions: what the linter's settings in `root` say. */
export function checkPurity(root: string): string[] {
  const require = createRequire(import.meta.url)
  const oxlint = join(dirname(require.resolve('oxlint/package.json')), 'bin', 'oxlint')
  const folders = codeFolders.filter((folder) => filesUnder(root, folder, '.ts').length > 0)
  const flags = ['-c', '.oxlintrc.json', '--format', 'json', ...folders]
  const run = spawnSync(process.execPath, [oxlint, ...flags], { cwd: root, encoding: 'utf8' })
  return findingsOf(run.stdout)
    .filter(({ code }) => architectureLints.has(code))
    .map(({ filename, code, message }) => `${filename}: ${code} ${message}`)
}

function findingsOf(output: string): readonly Finding[] {
  const report: { readonly diagnostics: readonly Finding[] } = JSON.parse(output)
  return report.diagnostics
}

/** The folders whose steps decide what is chosen, shown and served. */
const assertingFolders = ['paxos', 'placement', 'lease', 'replication', 'replica']
const assertionsMin = 25

/** Folders of the protocol with fewer assertions in 1,000 lines of code, comments and blank lines aside. */
export function checkAssertions(root: string): string[] {
  return assertingFolders.flatMap((folder) => {
    const files = filesUnder(root, `src/${folder}`, '.ts').map((path) => read(root, path))
    const code = files.flatMap((text) =>
      text
        .replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*/gm, '')
        .split('\n')
        .filter((line) => line.trim() !== ''),
    )
    const count = code.join('\n').match(/\b(?:assert|present|unreachable)\(/g)?.length ?? 0
    const density = Math.round((count / code.length) * 1000)
    if (code.length === 0 || density >= assertionsMin) return []
    return [`src/${folder}: ${density} assertions in 1,000 lines of code, not ${assertionsMin}`]
  })
}

/** The top of the tree in git: the files that a clone shows first are a fixed, short list. */
export function checkTopLevel(root: string): string[] {
  const run = spawnSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
  if (run.status !== 0) return [`${root}: git ls-files failed: ${run.stderr}`]
  const names = new Set(run.stdout.split('\n').map((path) => path.split('/')[0] ?? ''))
  return [...names]
    .filter((name) => name !== '' && !name.startsWith('.') && !topLevel.has(name))
    .map((name) => `${name}: not one of the names that the top folder has`)
}

/**
 * Where the simulator checks rules: after each event, what a run looks at when its phases end, and
 * sessions whose answers nothing else knows. And the schema language, which checks what is given to
 * it: each of its problems has a rule.
 */
function checkerFiles(root: string): readonly string[] {
  const besides = filesUnder(root, 'sim', '.ts').filter((path) =>
    [
      'sim/campaign.ts',
      'sim/coverage.ts',
      'sim/result.ts',
      'sim/run.ts',
      'sim/cluster/comparison.ts',
      'sim/workloads/group-maker.ts',
      'sim/workloads/load-phase.ts',
    ].includes(path),
  )
  return ['sim/audit', 'sim/checkers', 'schema']
    .flatMap((folder) => filesUnder(root, folder, '.ts'))
    .concat(besides)
}

/** Every rule of a SPEC.md is asserted in src or checked as above, and claimed by a test. */
export function checkRules(root: string): string[] {
  const sources = filesUnder(root, 'src', '.ts').map((path) => read(root, path))
  const checkers = checkerFiles(root).map((path) => read(root, path))
  const titles = filesUnder(root, 'test', '.test.ts').flatMap((path) => titlesIn(read(root, path)))
  return statedRules(root).flatMap(({ spec, rule }) => {
    const asserted = new RegExp(`['"\`]${rule}: `)
    // A function that answers with complaints names its rules where its docstring begins.
    const checked = new RegExp(`(?:['"\`]|/\\*\\* (?:[A-Z]+-\\d+, )*)${rule}['"\`:, ]`)
    const isCarried =
      sources.some((text) => asserted.test(text)) || checkers.some((text) => checked.test(text))
    const isClaimed = titles.some((title) => rulesOfTitle(title).includes(rule))
    return [
      ...(isCarried ? [] : [`${spec}: ${rule} is neither asserted in src nor checked in sim`]),
      ...(isClaimed ? [] : [`${spec}: ${rule} opens no test's title`]),
    ]
  })
}

/** The rules that begin a row of a table in a SPEC.md. */
export function statedRules(root: string): { readonly spec: string; readonly rule: string }[] {
  const specs = ['src', 'sim', 'schema'].flatMap((folder) => filesUnder(root, folder, 'SPEC.md'))
  return specs.flatMap((spec) => {
    const rows = read(root, spec).matchAll(/^\|\s*\*\*([A-Z]+-\d+)\*\*\s*\|/gm)
    return [...rows].map((row) => ({ spec, rule: row[1] ?? '' }))
  })
}

export function titlesIn(text: string): string[] {
  const call = /\b(?:test|it)(?:\.\w+(?:\((?:[^()]|\([^()]*\))*\))?)*\(\s*(['"`])(.*?)\1/g
  return [...text.matchAll(call)].map((match) => match[2] ?? '')
}

/** `PAX-2, PAX-3: refuses …` claims both. */
function rulesOfTitle(title: string): string[] {
  const list = /^(?:[A-Z]+-\d+[, ]*)+(?=:)/.exec(title)?.[0] ?? ''
  return list.split(/[, ]+/)
}
