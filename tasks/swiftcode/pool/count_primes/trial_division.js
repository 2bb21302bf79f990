const n = parseInt(require("fs").readFileSync(0, "utf8"), 10);

function isPrime(number) {
  for (let divisor = 2; divisor * divisor <= number; divisor++) {
    if (number % divisor 