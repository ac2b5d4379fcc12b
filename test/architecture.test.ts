/** The tree keeps its rules, and each check finds the fault it is there for. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import * as rules from './architecture-rules.ts'
import { arrows, dataWing, protocolWing } from './arrows.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const planted: string[] = []

afterEach(() => {
  for (const folder of planted.splice(0)) rmSync(folder, { recursive: true })
})

/** A folder of its own with these files. */
function plant(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'trilithon-tree-'))
  planted.push(folder)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  copyFileSync(join(root, '.oxlintrc.json'), join(folder, '.oxlintrc.json'))
  return folder
}

function functionOfLines(count: number): string {
  return `export function a(): void {\n${'  a()\n'.repeat(count - 2)}}\n`
}

test('each folder imports only what the table of arrows allows', () => {
  expect(rules.checkArrows(root)).toEqual([])
})

test('the folders of the protocol assert what they rest on', () => {
  expect(rules.checkAssertions(root)).toEqual([])
})

test('each arrow of the table is used', () => {
  expect(rules.checkUnusedArrows(root)).toEqual([])
})

test('neither wing imports the other', () => {
  for (const [from, to] of [
    [protocolWing, dataWing],
    [dataWing, protocolWing],
  ] as const) {
    for (const folder of from) {
      expect(arrows[folder]?.filter((target) => to.includes(target))).toEqual([])
    }
  }
})

test('no file imports itself over others', () => {
  expect(rules.checkCycles(root)).toEqual([])
})

test('no file is longer than 500 lines', () => {
  expect(rules.checkFileSizes(root)).toEqual([])
})

test('the protocol never waits', () => {
  expect(rules.checkSynchronous(root)).toEqual([])
})

test('pure folders touch no clock, chance or I/O, and no function is longer than 70 lines', () => {
  expect(rules.checkPurity(root)).toEqual([])
})

test.skipIf(!existsSync(join(root, '.git')))('the top folder has its fixed names only', () => {
  expect(rules.checkTopLevel(root)).toEqual([])
})

test('every rule is asserted or checked, and opens the title of a test', () => {
  expect(rules.checkRules(root)).toEqual([])
})

test('the table of arrows has no circle itself', () => {
  const seen = new Set<string>()
  for (const [folder, allowed] of Object.entries(arrows)) {
    for (const below of allowed) expect(seen, `${folder} -> ${below}`).toContain(below)
    seen.add(folder)
  }
})

test('a new arrow is found, whether of a value, a type, a re-export or a late import', () => {
  const tree = plant({
    'src/adapters/disk.ts': 'export const disk = 1\n',
    'src/paxos/a.ts': "import {\n  disk,\n} from '../adapters/disk.ts'\n",
    'src/paxos/b.ts': "import type { disk } from '../adapters/disk.ts'\n",
    'src/paxos/c.ts': "export { disk } from '../adapters/disk.ts'\n",
    'src/paxos/d.ts': "export const late = () => import('../adapters/disk.ts')\n",
    'src/cli/fine.ts': "import { disk } from '../adapters/disk.ts'\n",
    'src/base/up.ts': "import '../../sim/world/world.ts'\n",
  })
  const found = rules.checkArrows(tree)
  for (const name of ['a', 'b', 'c', 'd']) {
    const told = `src/paxos/${name}.ts: new arrow paxos -> adapters (imports src/adapters/disk.ts)`
    expect(found).toContain(told)
  }
  expect(found).toContain('src/base/up.ts: new arrow base -> sim (imports sim/world/world.ts)')
  expect(found).toHaveLength(5)
})

test('an arrow that no file uses is found', () => {
  const tree = plant({ 'src/paxos/a.ts': "import '../base/b.ts'\n", 'src/base/b.ts': '' })
  expect(rules.checkUnusedArrows(tree, { base: [], paxos: ['base', 'ports'] })).toEqual([
    'paxos -> ports: no file uses this arrow',
  ])
})

test('a folder inside another one has a row of its own', () => {
  const tree = plant({
    'src/wire/client/a.ts': "import '../peer/b.ts'\n",
    'src/wire/peer/b.ts': '',
  })
  expect(rules.checkArrows(tree)).toEqual([
    'src/wire/client/a.ts: new arrow wire/client -> wire/peer (imports src/wire/peer/b.ts)',
  ])
})

test('a folder without a row in the table is found', () => {
  const tree = plant({ 'src/misc/a.ts': 'export const a = 1\n' })
  expect(rules.checkArrows(tree)).toEqual([
    'src/misc/a.ts: folder misc is not in the table of arrows',
  ])
})

test('the rules name every file of an import cycle', () => {
  const tree = plant({
    'src/paxos/a.ts': "import { b } from './b.ts'\n",
    'src/paxos/b.ts': "import { c } from './c.ts'\n",
    'src/paxos/c.ts': "import type { a } from './a.ts'\n",
    'src/paxos/d.ts': "import { a } from './a.ts'\nimport { b } from './b.ts'\n",
  })
  expect(rules.checkCycles(tree)).toEqual([
    'src/paxos/c.ts: import cycle src/paxos/a.ts -> src/paxos/b.ts -> src/paxos/c.ts -> src/paxos/a.ts',
  ])
})

test('a file of 501 lines is found, one of 500 is not', () => {
  const lines = (count: number): string => 'export {}\n'.repeat(count)
  const tree = plant({ 'src/base/long.ts': lines(501), 'src/base/full.ts': lines(500) })
  expect(rules.checkFileSizes(tree)).toEqual(['src/base/long.ts: 501 lines, at most 500'])
})

test('waiting in the protocol is found, but not in its comments', () => {
  const tree = plant({
    'src/paxos/a.ts': 'export async function a(): Wish {}\n',
    'src/paxos/b.ts': '/** Nothing is async here. */\nexport const b = 1 // no Promise\n',
    'src/client/c.ts': 'export async function c(): Wish {}\n',
  })
  expect(rules.checkSynchronous(tree)).toEqual([
    "src/paxos/a.ts: 'async' in a folder that never waits",
  ])
})

test.each([
  ['src/paxos/a.ts', 'export const a = Date.now()', 'no-restricted-globals'],
  ['src/replica/a.ts', 'setTimeout(() => undefined, 1)', 'no-restricted-globals'],
  ['src/base/a.ts', "export const a = process.env['A']", 'no-restricted-globals'],
  ['src/cells/a.ts', 'export const a = performance.now()', 'no-restricted-globals'],
  ['sim/a.ts', 'export const a = Math.random()', 'no-restricted-properties'],
  ['sim/b.ts', 'export const b = new Date()', 'no-restricted-globals'],
  ['src/store/a.ts', "export const a = 'a'.localeCompare('b')", 'no-restricted-properties'],
  ['src/replication/a.ts', "import 'node:fs/promises'", 'no-restricted-imports'],
  ['src/placement/a.ts', "import { ClassicLevel } from 'classic-level'", 'no-restricted-imports'],
  ['src/base/bytes.ts', "import { randomBytes } from 'node:crypto'", 'no-restricted-imports'],
  ['src/wire/handshake.ts', "import { randomUUID } from 'node:crypto'", 'no-restricted-imports'],
  ['src/base/bytes.ts', "import { readFileSync } from 'node:fs'", 'no-restricted-imports'],
])('in %s, %j breaks %s', (path, text, rule) => {
  const found = rules.checkPurity(plant({ [path]: `${text}\n` }))
  expect(found).toEqual([expect.stringContaining(`${path}: eslint(${rule})`)])
})

test('a protocol folder with too few assertions is found', () => {
  const code = (asserts: number): string =>
    `// assert(no)\n/** assert(no) */\n${"assert(a, 'A-1: a')\n".repeat(asserts)}${'a()\n'.repeat(100 - asserts)}`
  const tree = plant({
    'src/lease/a.ts': code(2),
    'src/paxos/a.ts': code(3),
    'src/cells/a.ts': code(0),
  })
  expect(rules.checkAssertions(tree)).toEqual([
    'src/lease: 20 assertions in 1,000 lines of code, not 25',
  ])
})

test('a function of 71 lines is found', () => {
  const tree = plant({ 'src/cli/a.ts': functionOfLines(71) })
  expect(rules.checkPurity(tree)).toEqual([
    expect.stringContaining('src/cli/a.ts: eslint(max-lines-per-function)'),
  ])
})

test('the rules pass imports allowed at the edge and names that only look forbidden', () => {
  const tree = plant({
    'src/cli/a.ts': "import 'node:fs'\nexport const a = [Date.now(), process.pid, Math.random()]\n",
    'src/base/bytes.ts': "import { crc32 } from 'node:zlib'\nexport const b = crc32\n",
    'sim/main.ts': 'export const c = process.pid\n',
    'sim/node.ts': '/** Not Date. */\nexport const d = (process: { pid: number }) => process.pid\n',
    'src/cli/b.ts': functionOfLines(70),
  })
  expect(rules.checkPurity(tree)).toEqual([])
})

test('a name at the top that is not on the list is found, when git has it', () => {
  const tree = plant({ 'notes.md': '', 'lib/a.ts': '', 'src/a.ts': '', '.ci/run': '', out: '' })
  for (const args of [
    ['init', '-q'],
    ['add', 'notes.md', 'lib', 'src', '.ci'],
  ]) {
    expect(spawnSync('git', args, { cwd: tree }).status).toBe(0)
  }
  expect(rules.checkTopLevel(tree).map((told) => told.split(':')[0])).toEqual(['lib', 'notes.md'])
})

test('the rules name each rule id that no source asserts or no test claims', () => {
  const tree = plant({
    'src/paxos/SPEC.md':
      '| **TREE-1** | a |\n| **TREE-2** | b |\n| **TREE-3** | c |\n| **TREE-4** | d |\nas TREE-9 says\n',
    'src/paxos/a.ts':
      "assert(a, 'TREE-1: a')\nassert(a, \"TREE-22: b's\")\n// 'TREE-3' is not asserted\n",
    'sim/checkers/d.ts': "referee.check(d, 'TREE-4', 'A thing.')\n",
    'test/a.test.ts':
      "test('TREE-1: holds', f)\ntest('says nothing of TREE-2', f)\ntest.skipIf(no())('TREE-3, TREE-4: hold', f)\n",
  })
  expect(rules.checkRules(tree)).toEqual([
    'src/paxos/SPEC.md: TREE-2 is neither asserted in src nor checked in sim',
    "src/paxos/SPEC.md: TREE-2 opens no test's title",
    'src/paxos/SPEC.md: TREE-3 is neither asserted in src nor checked in sim',
  ])
})
