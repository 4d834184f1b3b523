"builtin.module"() <{sym_name = "jit_mlp_outputs"}> ({
  "func.func"() <{function_type = (tensor<6x8xf64>, tensor<8xf64>, tensor<8x3xf64>, tensor<3xf64>, tensor<5x6xf64>) -> (tensor<5x3xf64>, tensor<5x3xf64>), res_attrs = [{jax.result_info = "result['logits']"}, {jax.result_info = "result['probabilities']"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<6x8xf64>, %arg1: tensor<8xf64>, %arg2: tensor<8x3xf64>, %arg3: tensor<3xf64>, %arg4: tensor<5x6xf64>):
    %0 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %1 = "stablehlo.constant"() <{value = dense<0xFFF0000000000000> : tensor<f64>}> : () -> tensor<f64>
    %2 = "stablehlo.dot_general"(%arg4, %arg0) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<5x6xf64>, tensor<6x8xf64>) -> tensor<5x8xf64>
    %3 = "stablehlo.broadcast_in_dim"(%arg1) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf64>) -> tensor<1x8xf64>
    %4 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf64>) -> tensor<5x8xf64>
    %5 = "stablehlo.add"(%2, %4) : (tensor<5x8xf64>, tensor<5x8xf64>) -> tensor<5x8xf64>
    %6 = "stablehlo.tanh"(%5) : (tensor<5x8xf64>) -> tensor<5x8xf64>
    %7 = "stablehlo.dot_general"(%6, %arg2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<5x8xf64>, tensor<8x3xf64>) -> tensor<5x3xf64>
    %8 = "stablehlo.broadcast_in_dim"(%arg3) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf64>) -> tensor<1x3xf64>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x3xf64>) -> tensor<5x3xf64>
    %10 = "stablehlo.add"(%7, %9) : (tensor<5x3xf64>, tensor<5x3xf64>) -> tensor<5x3xf64>
    %11 = "stablehlo.dot_general"(%arg4, %arg0) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<5x6xf64>, tensor<6x8xf64>) -> tensor<5x8xf64>
    %12 = "stablehlo.broadcast_in_dim"(%arg1) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf64>) -> tensor<1x8xf64>
    %13 = "stablehlo.broadcast_in_dim"(%12) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf64>) -> tensor<5x8xf64>
    %14 = "stablehlo.add"(%11, %13) : (tensor<5x8xf64>, tensor<5x8xf64>) -> tensor<5x8xf64>
    %15 = "stablehlo.tanh"(%14) : (tensor<5x8xf64>) -> tensor<5x8xf64>
    %16 = "stablehlo.dot_general"(%15, %arg2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<5x8xf64>, tensor<8x3xf64>) -> tensor<5x3xf64>
    %17 = "stablehlo.broadcast_in_dim"(%arg3) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf64>) -> tensor<1x3xf64>
    %18 = "stablehlo.broadcast_in_dim"(%17) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x3xf64>) -> tensor<5x3xf64>
    %19 = "stablehlo.add"(%16, %18) : (tensor<5x3xf64>, tensor<5x3xf64>) -> tensor<5x3xf64>
    %20 = "stablehlo.reduce"(%19, %1) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg7: tensor<f64>, %arg8: tensor<f64>):
      %32 = "stablehlo.maximum"(%arg7, %arg8) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%32) : (tensor<f64>) -> ()
    }) : (tensor<5x3xf64>, tensor<f64>) -> tensor<5xf64>
    %21 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5xf64>
    %22 = "stablehlo.maximum"(%21, %20) : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
    %23 = "stablehlo.broadcast_in_dim"(%22) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xf64>) -> tensor<5x1xf64>
    %24 = "stablehlo.broadcast_in_dim"(%23) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<5x1xf64>) -> tensor<5x3xf64>
    %25 = "stablehlo.subtract"(%19, %24) : (tensor<5x3xf64>, tensor<5x3xf64>) -> tensor<5x3xf64>
    %26 = "stablehlo.exponential"(%25) : (tensor<5x3xf64>) -> tensor<5x3xf64>
    %27 = "stablehlo.reduce"(%26, %0) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg5: tensor<f64>, %arg6: tensor<f64>):
      %31 = "stablehlo.add"(%arg5, %arg6) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%31) : (tensor<f64>) -> ()
    }) : (tensor<5x3xf64>, tensor<f64>) -> tensor<5xf64>
    %28 = "stablehlo.broadcast_in_dim"(%27) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xf64>) -> tensor<5x1xf64>
    %29 = "stablehlo.broadcast_in_dim"(%28) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<5x1xf64>) -> tensor<5x3xf64>
    %30 = "stablehlo.divide"(%26, %29) : (tensor<5x3xf64>, tensor<5x3xf64>) -> tensor<5x3xf64>
    "func.return"(%10, %30) : (tensor<5x3xf64>, tensor<5x3xf64>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
