/** A program in which a known bug is planted: a check that never fails shows nothing. */
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Mutant } from '../mutants/mutant.ts'
import { plant } from '../mutants/mutant-copy.ts'
import { mutants } from '../mutants/mutants.ts'
import { refuse, say } from './flags.ts'

/** Uses the built command line, or that of a copy with the mutant of this id. */
export async function withProgram(
  id: string | undefined,
  use: (program: string) => Promise<number>,
): Promise<number> {
  if (id !== undefined) {
    const mutant = mutants.find((one) => one.id === id)
    return mutant === undefined ? refuse(`no mutant is named ${id}`) : inMutant(mutant, use)
  }
  const program = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))
  return existsSync(program) ? use(program) : refuse(`${program} is missing: npm run build`)
}

async function inMutant(
  mutant: Mutant,
  use: (program: string) => Promise<number>,
): Promise<number> {
  const copy = await mkdtemp(join(tmpdir(), `trilithon-${mutant.id}-`))
  try {
    say(`planting ${mutant.id}: ${mutant.title}`)
    await plant(mutant, copy)
    return await use(join(copy, 'dist', 'src', 'cli', 'main.js'))
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}
