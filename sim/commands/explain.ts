/** `sim explain FILE`: why a scenario fails, for a person to read. */
import { describeExplanation, explain } from '../scenarios/explain.ts'
import { exitCodes } from '../result.ts'
import { print, refuse, type AddCommand } from './flags.ts'
import { readScenario } from './scenario-file.ts'

export const addExplain: AddCommand = (program, finish) => {
  program
    .command('explain')
    .description('tell what fails in a scenario, and what led to it')
    .argument('<file>', 'what shrink or nightly has written')
    .action(async (file: string) => {
      finish(await explainCommand(file))
    })
}

async function explainCommand(file: string): Promise<number> {
  const read = await readScenario(file)
  if (!read.ok) return refuse(read.reason)
  const explanation = await explain(read.scenario)
  if (explanation === undefined) {
    print(`${read.scenario.name}: clean, there is nothing to explain`)
    return 0
  }
  print(describeExplanation(explanation))
  return exitCodes[explanation.result.outcome]
}
