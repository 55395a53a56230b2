// The paths of people through the console.
//
//	node scenarios.mjs PATH-OF-CHROMIUM ADDRESS-OF-THE-API SCENARIO JSON
import {open, Visitor} from './browser.mjs'

const [chromium, base, name, args] = process.argv.slice(2)
const scenario = (await import(`./scenarios/${name}.mjs`)).default
const browser = await open(chromium)
try {
	const come = () => Visitor.come(browser, base, process.env.MEDIAGATE_PICTURES)
	await scenario({come, base, ...JSON.parse(args)})
} catch (error) {
	for (const context of browser.browserContexts()) {
		for (const page of await context.pages()) {
			console.error(`${page.url()} shows:\n${await page.evaluate(() => document.body.innerText.slice(0, 4000)).catch(String)}\n`)
		}
	}
	throw error
} finally {
	await browser.close()
}
process.exit(0) // whatever standard input does
