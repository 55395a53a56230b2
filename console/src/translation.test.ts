// Browsers that translate a page put each of its texts into an element of their own. React
// does not know of them, so it fails when it removes a bare text, or puts an element before
// one. A text that comes and goes therefore has an element of its own, and so has a text that
// follows something which comes and goes.
import ts from 'typescript';
import { expect, test } from 'vitest';

const config = ts.getParsedCommandLineOfConfigFile('tsconfig.json', {}, { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} });
const program = ts.createProgram(config!.fileNames, config!.options);
const checker = program.getTypeChecker();

// The falsy "" and 0 before a && are no texts.
const isText = (type: ts.Type) => (type.flags & (ts.TypeFlags.StringLike | ts.TypeFlags.NumberLike)) !== 0 && !(type.isLiteral() && !type.value);
const mayBeText = (node: ts.Expression) => {
  const type = checker.getTypeAtLocation(node);
  return (type.isUnion() ? type.types : [type]).some(isText);
};

/** Whether what an expression shows depends on a condition. */
const isConditional = (node: ts.Expression): boolean =>
  ts.isParenthesizedExpression(node) ? isConditional(node.expression) : ts.isConditionalExpression(node) || (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.AmpersandAmpersandToken);

function faultsOf(parent: ts.JsxElement | ts.JsxFragment): ts.Node[] {
  const children = parent.children.filter((child) => (ts.isJsxText(child) ? !child.containsOnlyTriviaWhiteSpaces : !ts.isJsxExpression(child) || child.expression));
  if (ts.isJsxElement(parent) && children.length < 2) return []; // React sets the text of the element itself
  return children.filter((child, i) => {
    if (!ts.isJsxExpression(child) || !child.expression || !isConditional(child.expression)) return false;
    if (mayBeText(child.expression)) return true;
    const next = children[i + 1];
    return next !== undefined && (ts.isJsxText(next) || (ts.isJsxExpression(next) && mayBeText(next.expression!)));
  });
}

test('no bare text comes and goes', { timeout: 300_000 }, () => {
  const found: string[] = [];
  for (const file of program.getSourceFiles()) {
    if (file.isDeclarationFile || !file.fileName.endsWith('.tsx')) continue;
    const visit = (node: ts.Node): void => {
      if (ts.isJsxElement(node) || ts.isJsxFragment(node)) {
        for (const fault of faultsOf(node)) found.push(`${file.fileName.replace(/.*\/src\//, '')}:${file.getLineAndCharacterOfPosition(fault.getStart()).line + 1}: ${fault.getText()}`);
      }
      ts.forEachChild(node, visit);
    };
    visit(file);
  }
  expect(found).toEqual([]);
});
